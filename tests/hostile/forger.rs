//! Who publishes on channels that are not theirs, and may read the queues.

use std::sync::atomic::{AtomicBool, Ordering};

use lockable_tests::{Admin, Dice};

use crate::calls::pause;

pub(crate) struct Forger<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) dice: Dice,
    pub(crate) namespace: &'a str,
    /// The names of the locks.
    pub(crate) keys: Vec<String>,
    /// `SPUBLISH` where grants have shard channels.
    pub(crate) is_cluster: bool,
    /// Whether it publishes grants that no one can tell from true ones.
    pub(crate) deceives: bool,
}

impl Forger<'_> {
    /// Publishes until `is_over`; returns how many messages a locker has received.
    pub(crate) async fn run(mut self, is_over: &AtomicBool) -> u64 {
        let mut heard = 0;
        while !is_over.load(Ordering::Acquire) {
            for (channel, is_sharded) in self.channels() {
                let message = self.message(&channel);
                let verb = if is_sharded { "SPUBLISH" } else { "PUBLISH" };
                let text = message.as_slice();
                heard += publish(self.admin, verb, &channel, text);
            }
            pause(self.dice.millis(1..20)).await;
        }
        heard
    }

    fn channels(&self) -> Vec<(String, bool)> {
        let pattern = format!("{}:*", self.namespace);
        let list = |kind: &str| self.admin.command::<Vec<String>>(&["PUBSUB", kind, &pattern]);
        let plain = list("CHANNELS").into_iter().map(|channel| (channel, false));
        let sharded = if self.is_cluster { list("SHARDCHANNELS") } else { Vec::new() };
        plain.chain(sharded.into_iter().map(|channel| (channel, true))).collect()
    }

    fn message(&mut self, channel: &str) -> Vec<u8> {
        let key = self.keys[usize::try_from(self.dice.below(3)).unwrap() % self.keys.len()].clone();
        let owner = self.owner(&key);
        match self.dice.below(8) {
            0 => self.garbage(),
            1 | 2 => self.odd(&owner, &key).into_bytes(),
            _ if channel.contains(":revoke:") => self.revocation(&owner, &key).into_bytes(),
            _ => self.grant(&owner, &key).into_bytes(),
        }
    }

    /// Of one who waits, or holds the lock, or of no one.
    fn owner(&mut self, key: &str) -> String {
        let queue = format!("{}:queue:{}", self.namespace, queue_of(key));
        let entries = self.admin.command::<Vec<String>>(&["LRANGE", &queue, "0", "-1"]);
        let waiting = entries.first().and_then(|entry| entry.split_once(' '));
        let waiting = waiting.map(|(_, owner)| owner.to_owned());
        let holding = self.admin.try_command(&["GET", key]).ok();
        let holding = holding.and_then(|value| redis::from_redis_value::<String>(value).ok());
        let nobody = "0123456789abcdef.17500000000000010000000001".to_owned();
        match self.dice.below(4) {
            0 => holding.unwrap_or(nobody),
            1 => nobody,
            _ => waiting.unwrap_or(nobody),
        }
    }

    fn garbage(&mut self) -> Vec<u8> {
        let length = self.dice.pick(&[0, 1, 7, 60, 5_000, 200_000]);
        let byte = |dice: &mut Dice| u8::try_from(dice.below(256)).expect("it is a byte");
        (0..length).map(|_| byte(&mut self.dice)).collect()
    }

    /// Parts that are nearly those of a message.
    fn odd(&mut self, owner: &str, key: &str) -> String {
        let long = "x".repeat(3_000);
        let parts = [
            "",
            "0",
            "-1",
            "+1",
            "1.5",
            "1e9",
            " 7",
            "18446744073709551615",
            "18446744073709551616",
            "9",
            "1000",
            "revoke",
            "forced",
            "\0",
            "é",
            "\r",
            owner,
            key,
            &long,
            "1750000000000001",
        ];
        let count = self.dice.below(8);
        let parts: Vec<_> = (0..count).map(|_| self.dice.pick(&parts)).collect();
        parts.join("\n")
    }

    fn revocation(&mut self, owner: &str, key: &str) -> String {
        let verb = self.dice.pick(&["revoke", "forced"]);
        format!("{verb}\n{owner}\nwhy\n{key}")
    }

    /// As a script publishes it, for a minute, but with a token or a time that no script gives.
    fn grant(&mut self, owner: &str, key: &str) -> String {
        let now = now(self.admin);
        let (token, time) = match self.dice.below(6) {
            0 => (u64::MAX, now),
            1 => (now + 18, now),
            2 => (u64::MAX - 9, u64::MAX - 9),
            3 => (now - 3_600_000_000, now - 3_600_000_000),
            4 => (0, now + 3_600_000_000),
            _ if self.deceives => (now, now),
            _ => (now + 60_000_000, now + 1_000),
        };
        format!("{token}\n{time}\n60000\n{owner}\n{key}")
    }
}

fn publish(admin: &Admin, verb: &str, channel: &str, text: &[u8]) -> u64 {
    // An argument that is no text goes as bytes.
    let reply = admin.try_bytes(&[verb.as_bytes(), channel.as_bytes(), text]);
    // A shard channel may be at another node.
    reply.ok().and_then(|reply| redis::from_redis_value(reply).ok()).unwrap_or_default()
}

/// The names of the locks have hash tags.
fn queue_of(key: &str) -> String {
    format!(":{key}")
}

/// The server's time in microseconds.
pub(crate) fn now(admin: &Admin) -> u64 {
    let [seconds, micros] = admin.command::<[u64; 2]>(&["TIME"]);
    seconds * 1_000_000 + micros
}
