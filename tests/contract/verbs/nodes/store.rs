//! Two nodes whose clocks stand still, past the verbs.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use lockable_tests::cluster::slot;
use lockable_tests::{Admin, Cluster, Server, wait};

use super::super::companions;
use super::super::dice::Dice;
use super::super::side::Side;
use super::super::state::{Life, Place, State};
use crate::fixture::LIMIT;

pub(super) struct Nodes {
    cluster: Cluster,
    admins: Vec<Admin>,
    now: Duration,
    /// The slots that move at the moment.
    moving: BTreeSet<u16>,
    /// Those that have moved, or begun to, in this sequence.
    moved: BTreeSet<u16>,
}

impl Nodes {
    pub(super) fn start() -> Self {
        let cluster = Cluster::builder().shards(2).replicas(0).node_timeout(LIMIT);
        let cluster = cluster.servers(Server::builder().clock()).start();
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let now = Duration::from_secs(today.as_secs());
        let admins = cluster.servers().map(Server::admin).collect();
        let mut this =
            Self { cluster, admins, now, moving: BTreeSet::new(), moved: BTreeSet::new() };
        this.stop_clocks(now);
        this
    }

    pub(super) fn url(&self) -> String {
        self.cluster.url()
    }

    pub(super) fn clear(&mut self) {
        self.moved.clear();
        self.admins.iter().for_each(Admin::flush);
    }

    /// Lets time pass, and returns how much.
    pub(super) fn pass(&mut self, state: &State, time: Duration) -> Duration {
        let time = state.beside_ends(time);
        self.stop_clocks(self.now + time);
        time
    }

    fn stop_clocks(&mut self, now: Duration) {
        self.now = now;
        for (server, admin) in self.cluster.servers().zip(&self.admins) {
            server.stop_clock(now);
            wait::until(wait::HANG, || {
                let (seconds, micros): (u64, u64) = admin.command(&["TIME"]);
                let time = Duration::from_secs(seconds) + Duration::from_micros(micros);
                time.as_millis() == now.as_millis()
            });
        }
    }

    /// What is stored about the keys of these processes.
    pub(super) fn look(&self, redis: &Side) -> State {
        let names: Vec<Vec<String>> = self.admins.iter().map(|admin| admin.keys("*")).collect();
        let twice: Vec<_> = names[0].iter().filter(|name| names[1].contains(name)).collect();
        assert!(twice.iter().all(|name| is_passing(name)), "at both nodes: {twice:?}");
        let mut known = BTreeSet::new();
        let places = std::array::from_fn(|key| {
            let (name, queue) = (&redis.keys[key], companions::queue(&redis.keys[key]));
            known.extend([name.clone(), queue.clone(), companions::fence(name)]);
            let lock: Option<String> = self.ask(name, &["GET", name]);
            let lock = lock.map(|owner| {
                let life: Option<i64> = self.ask(name, &["PTTL", name]);
                (redis.number(&owner), Life::from_pttl(life.unwrap()))
            });
            let entries: Option<Vec<String>> = self.ask(&queue, &["LRANGE", &queue, "0", "-1"]);
            let entries = entries.unwrap_or_default();
            Place { lock, queue: entries.iter().map(|entry| redis.queued(entry)).collect() }
        });
        let others = names.into_iter().flatten();
        let others = others.filter(|name| !known.contains(name) && !is_passing(name));
        State { places, others: others.collect() }
    }

    /// Whether the process with this channel hears of wake-ups for the lock.
    pub(super) fn has_listener(&self, name: &str, channel: &str) -> bool {
        let fence = companions::fence(name);
        let channel = format!("{channel}:{}", &fence[fence.find('{').unwrap()..]);
        channels(&self.cluster.master_of(name).admin()).contains(&channel)
    }

    /// For how many milliseconds all queues are there.
    pub(super) fn patience(&self, redis: &Side) -> u64 {
        let life = |key: &String| {
            let queue = companions::queue(key);
            self.ask::<i64>(&queue, &["PTTL", &queue])
        };
        let lives = redis.keys.iter().filter_map(life);
        lives.min().and_then(|life| u64::try_from(life).ok()).unwrap_or(u64::MAX)
    }

    /// Asks the node where the name is, if it is anywhere.
    fn ask<T: redis::FromRedisValue>(&self, name: &str, words: &[&str]) -> Option<T> {
        let admin = self.admins.iter().find(|admin| Self::has(admin, name))?;
        admin.command::<()>(&["ASKING"]);
        Some(admin.command(words))
    }

    fn has(admin: &Admin, name: &str) -> bool {
        admin.command::<()>(&["ASKING"]);
        let found = admin.try_command(&["EXISTS", name]);
        found.is_ok_and(|found| found == redis::Value::Int(1))
    }

    pub(super) fn delete(&self, name: &str) {
        let _gone: Option<u64> = self.ask(name, &["DEL", name]);
    }

    /// Where no slot moves.
    pub(super) fn put(&self, name: &str, text: &str, life: Option<Duration>) {
        let admin = self.cluster.master_of(name).admin();
        admin.set(name, text);
        if let Some(life) = life {
            admin.command::<()>(&["PEXPIRE", name, &life.as_millis().to_string()]);
        }
    }

    /// Moves the slot of a lock, if it was not moved before: what a node hears of late may be about a slot that
    /// has come back.
    pub(super) fn move_slot(&mut self, name: &str) -> bool {
        let is_new = self.moved.insert(slot(name));
        if is_new {
            let owner = self.cluster.master_of(name).admin();
            let listeners = listeners_of(name, &channels(&owner));
            self.cluster.begin_move(slot(name), self.other_than_owner(name));
            self.end_move(slot(name));
            // They hear that they listen no more, and throw the connection away.
            let is_gone = |channel: &String| {
                !listeners.iter().any(|listener| channel.starts_with(listener.as_str()))
            };
            wait::until(wait::HANG, || channels(&owner).iter().all(is_gone));
        }
        is_new
    }

    fn end_move(&self, slot: u16) {
        self.cluster.end_move(slot).unwrap();
        wait::until(wait::HANG, || {
            let views = self.admins.iter().map(epochs);
            let mut views = views.collect::<Vec<_>>();
            views.dedup();
            views.len() == 1
        });
    }

    /// Moves the slot of a lock on: begins, moves one of its keys, or ends; says what was done.
    pub(super) fn continue_move(&mut self, name: &str, dice: &mut Dice) -> String {
        let slot = slot(name);
        if self.moved.contains(&slot) && !self.moving.contains(&slot) {
            return format!("slot {slot} has moved before");
        }
        self.moved.insert(slot);
        if self.moving.insert(slot) {
            self.cluster.begin_move(slot, self.other_than_owner(name));
            return format!("slot {slot} of {name:?} begins to move");
        }
        if dice.below(6) == 0 {
            self.moving.remove(&slot);
            self.end_move(slot);
            return format!("slot {slot} has moved");
        }
        let names = [name.to_owned(), companions::fence(name), companions::queue(name)];
        let name = &names[dice.below(names.len())];
        let is_moved = self.cluster.move_key(name).unwrap();
        format!("{name:?} moves: {is_moved}")
    }

    pub(super) fn moves(&self) -> bool {
        !self.moving.is_empty()
    }

    pub(super) fn end_moves(&mut self) {
        while let Some(slot) = self.moving.pop_first() {
            self.end_move(slot);
        }
    }

    fn other_than_owner(&self, name: &str) -> &Server {
        let owner = self.cluster.master_of(name).addr();
        self.cluster.servers().find(|server| server.addr() != owner).unwrap()
    }
}

/// What connections try when they open, and the fence counters of other locks.
fn is_passing(name: &str) -> bool {
    name.starts_with("lockable:probe:") || name.starts_with("stranger:")
}

/// The configuration of each node, as one of them knows it: its number and its slots.
fn epochs(admin: &Admin) -> Vec<String> {
    let text: String = admin.command(&["CLUSTER", "NODES"]);
    let epoch = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        // What a node moves is known to that one alone.
        let slots: Vec<_> = words[8..].iter().filter(|word| !word.starts_with('[')).collect();
        format!("{} {} {:?}", words[0], words[6], slots)
    };
    let mut epochs: Vec<_> = text.lines().map(epoch).collect();
    epochs.sort();
    epochs
}

/// Those on which processes listen at a node.
fn channels(admin: &Admin) -> Vec<String> {
    admin.command(&["PUBSUB", "SHARDCHANNELS"])
}

/// With what the channels begin of those who listen for wake-ups in the slot of a lock.
fn listeners_of(name: &str, channels: &[String]) -> Vec<String> {
    let fence = companions::fence(name);
    let tag = &fence[fence.find('{').unwrap()..];
    let listeners = channels.iter().filter_map(|channel| channel.strip_suffix(tag));
    listeners.map(str::to_owned).collect()
}
