//! Slots that change hands.

use redis::{RedisResult, Value};

use super::slots::Shard;
use super::view::View;
use super::{Cluster, Node};
use crate::admin::Admin;
use crate::server::{ADMIN, Server};

impl Cluster {
    /// Begins to move a slot key by key; until [`end_move`](Self::end_move), each key is where
    /// [`move_key`](Self::move_key) has left it.
    pub fn begin_move(&self, slot: u16, to: &Server) {
        self.transfer(slot, to).begin().expect("a slot can be moved");
    }

    /// The same, and moves those keys of the slot whose bit is set, in the order of their names, which it returns.
    pub fn begin_move_of(&self, slot: u16, to: &Server, moved: u8) -> Vec<String> {
        let transfer = self.transfer(slot, to);
        transfer.begin().expect("a slot can be moved");
        let words = ["CLUSTER", "GETKEYSINSLOT", &transfer.slot, "10"];
        let mut names: Vec<String> = transfer.source.command(&words);
        names.sort();
        for (_, name) in names.iter().enumerate().filter(|(at, _)| moved & (1 << at) != 0) {
            assert_eq!(transfer.migrate(&[name]), Ok(true));
        }
        names
    }

    /// Moves a key whose slot is being moved, by its name in the server; whether it was there.
    ///
    /// # Errors
    ///
    /// The server's, such as `BUSYKEY` when the target has such a key.
    pub fn move_key(&self, name: &str) -> RedisResult<bool> {
        self.transfer_under_way(super::slot(name)).migrate(&[name])
    }

    /// Moves the keys of a slot that are left, and then the slot.
    ///
    /// # Errors
    ///
    /// As [`move_key`](Self::move_key).
    pub fn end_move(&self, slot: u16) -> RedisResult<()> {
        self.transfer_under_way(slot).end()
    }

    /// Ends a move without having moved the slot: what the target has of it is deleted. Then a pause of the source ends.
    pub fn give_up_move(&self, slot: u16) {
        let transfer = self.transfer_under_way(slot);
        forget(&transfer.target, &transfer.slot, &transfer.source_id);
        // Where Valkey sends it on to replicas, it is a write.
        let stable = ["CLUSTER", "SETSLOT", &transfer.slot, "STABLE"];
        transfer.source.together(&[&["CLIENT", "UNPAUSE"], &stable]);
    }

    /// Ends a move of which the master of the slot does not know, because it was promoted meanwhile: the target deletes
    /// what it has of the slot, as an operator lets it. Where the master knows it, returns `false`.
    pub fn forget_move(&self, slot: u16, master: &Server, target: &Server) -> bool {
        if View::of(&master.admin()).target_of(slot).is_some() {
            return false;
        }
        forget(&target.admin(), &slot.to_string(), &self.node(master).id());
        true
    }

    /// Moves that number of slots key by key from one master to another one.
    ///
    /// # Errors
    ///
    /// As [`move_key`](Self::move_key).
    pub fn reshard(&self, count: usize, from: &Server, to: &Server) -> RedisResult<()> {
        let slots = self.slots_of(from).into_iter().take(count);
        let mut slots = slots.peekable();
        let Some(first) = slots.peek() else { return Ok(()) };
        let mut transfer = self.transfer(*first, to);
        for slot in slots {
            transfer.slot = slot.to_string();
            transfer.begin()?;
            transfer.end()?;
        }
        Ok(())
    }

    /// Moves that number of slots from one master to another one at once, with all their keys, where the servers
    /// can; otherwise as [`reshard`](Self::reshard).
    ///
    /// # Errors
    ///
    /// As [`move_key`](Self::move_key).
    pub fn move_at_once(&self, count: usize, from: &Server, to: &Server) -> RedisResult<()> {
        let slots = self.slots_of(from);
        let ranges = ranges(slots.iter().take(count).copied());
        let (source, target) = (from.admin(), to.admin());
        if knows(&source, "cluster|migrateslots") {
            let to = self.node(to);
            let words = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE"].map(str::to_owned);
            let node = ["NODE".to_owned(), to.id()];
            source.try_command(&borrowed(&[&words[..], &ranges, &node].concat()))?;
        } else if knows(&target, "cluster|migration") {
            let words = ["CLUSTER", "MIGRATION", "IMPORT"].map(str::to_owned);
            target.try_command(&borrowed(&[&words[..], &ranges].concat()))?;
        } else {
            return self.reshard(count, from, to);
        }
        for slot in slots.into_iter().take(count).step_by(1024) {
            self.agreed(slot, |server| server.addr() == to.addr());
        }
        Ok(())
    }

    /// The slots of a master, in order.
    pub fn slots_of(&self, master: &Server) -> Vec<u16> {
        View::of(&master.admin()).slots_of(&self.node(master).id()).collect()
    }

    /// The same, to ask which keys are in them.
    pub fn shard_of(&self, master: &Server) -> Shard {
        Shard::new(self.slots_of(master))
    }

    fn transfer(&self, slot: u16, to: &Server) -> Transfer {
        let source = self.node(self.agreed(slot, |_| true));
        let target = self.node(to);
        let is_other = |node: &&Node| node.id() != source.id() && node.id() != target.id();
        let others = self.running().filter(is_other).map(Node::admin);
        Transfer {
            slot: slot.to_string(),
            address: to.service_addr().ip().to_string(),
            port: to.service_addr().port().to_string(),
            source: source.admin(),
            source_id: source.id(),
            target: target.admin(),
            target_id: target.id(),
            others: others.filter(super::is_master).collect(),
        }
    }

    fn transfer_under_way(&self, slot: u16) -> Transfer {
        let source = self.agreed(slot, |_| true);
        let view = View::of(&source.admin());
        let target = view.target_of(slot).expect("the slot is being moved");
        self.transfer(slot, &self.member_of(target).expect("it is a member").server)
    }
}

/// One slot, from one master to another one.
struct Transfer {
    slot: String,
    address: String,
    port: String,
    source: Admin,
    source_id: String,
    target: Admin,
    target_id: String,
    /// The other masters.
    others: Vec<Admin>,
}

impl Transfer {
    /// The target first, because the source sends clients there from then on.
    fn begin(&self) -> RedisResult<()> {
        let Self { slot, source, source_id, target, target_id, .. } = self;
        target.try_command(&["CLUSTER", "SETSLOT", slot, "IMPORTING", source_id])?;
        source.try_command(&["CLUSTER", "SETSLOT", slot, "MIGRATING", target_id])?;
        Ok(())
    }

    fn migrate(&self, names: &[&str]) -> RedisResult<bool> {
        let to = ["MIGRATE", &self.address, &self.port, "", "0", PATIENCE, "AUTH2", ADMIN, ADMIN];
        let words = [&to[..], &["KEYS"], names].concat();
        Ok(self.source.try_command(&words)? == Value::Okay)
    }

    fn end(&self) -> RedisResult<()> {
        loop {
            let words = ["CLUSTER", "GETKEYSINSLOT", &self.slot, "100"];
            let names: Vec<String> = self.source.command(&words);
            if names.is_empty() {
                break;
            }
            self.migrate(&borrowed(&names))?;
        }
        let words = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &self.target_id];
        // The target first, so that there is always one that has the slot.
        for admin in [&self.target, &self.source].into_iter().chain(&self.others) {
            admin.try_command(&words)?;
        }
        Ok(())
    }
}

/// The target of a move deletes what it has of the slot.
fn forget(target: &Admin, slot: &str, master: &str) {
    // It may know of no master of the slot.
    target.command::<()>(&["CLUSTER", "SETSLOT", slot, "NODE", master]);
    for name in target.command::<Vec<String>>(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]) {
        target.command::<()>(&["ASKING"]);
        target.command::<()>(&["DEL", &name]);
    }
    target.command::<()>(&["CLUSTER", "SETSLOT", slot, "STABLE"]);
}

/// The first and the last slot of each range, as commands have them.
fn ranges(slots: impl Iterator<Item = u16>) -> Vec<String> {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for slot in slots {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot)),
        }
    }
    ranges.into_iter().flat_map(|(first, last)| [first.to_string(), last.to_string()]).collect()
}

fn knows(admin: &Admin, command: &str) -> bool {
    let known: Vec<Value> = admin.command(&["COMMAND", "INFO", command]);
    known.first().is_some_and(|reply| *reply != Value::Nil)
}

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The milliseconds after which a server gives up to move keys.
const PATIENCE: &str = "10000";
