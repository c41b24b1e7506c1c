//! Who publishes on channels that are not theirs, and may read the locks and the queues.

use std::sync::atomic::{AtomicBool, Ordering};

use lockable_tests::{Admin, Dice};

use crate::calls::pause;

pub(crate) struct Forger<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) dice: Dice,
    pub(crate) namespace: &'a str,
    /// The names of the locks.
    pub(crate) keys: Vec<String>,
    /// `SPUBLISH` where wake-ups have shard channels.
    pub(crate) is_cluster: bool,
    /// Whether it leaves holders alone, whom an operator may ask to stop.
    pub(crate) wakes_only: bool,
}

impl Forger<'_> {
    /// Publishes until `is_over`; returns how many messages a locker has received, and how many of them wake a waiter.
    pub(crate) async fn run(mut self, is_over: &AtomicBool) -> [u64; 2] {
        let (mut heard, mut woken) = (0, 0);
        while !is_over.load(Ordering::Acquire) {
            for (channel, is_sharded) in self.channels() {
                let (message, wakes) = self.message(&channel);
                let verb = if is_sharded { "SPUBLISH" } else { "PUBLISH" };
                let received = publish(self.admin, verb, &channel, &message);
                heard += received;
                woken += if wakes { received } else { 0 };
            }
            pause(self.dice.millis(1..20)).await;
        }
        [heard, woken]
    }

    fn channels(&self) -> Vec<(String, bool)> {
        let pattern = format!("{}:*", self.namespace);
        let list = |kind: &str| self.admin.command::<Vec<String>>(&["PUBSUB", kind, &pattern]);
        let plain = list("CHANNELS").into_iter().map(|channel| (channel, false));
        let sharded = if self.is_cluster { list("SHARDCHANNELS") } else { Vec::new() };
        let all = plain.chain(sharded.into_iter().map(|channel| (channel, true)));
        all.filter(|(channel, _)| !self.wakes_only || !is_of_operators(channel)).collect()
    }

    /// Also whether it may be the wake-up of one who waits there.
    fn message(&mut self, channel: &str) -> (Vec<u8>, bool) {
        let key = self.keys[usize::try_from(self.dice.below(3)).unwrap() % self.keys.len()].clone();
        let owner = self.owner(&key, channel);
        match self.dice.below(8) {
            0 => (self.garbage(), false),
            1 | 2 => (self.odd(&owner, &key).into_bytes(), false),
            _ if is_of_operators(channel) => (self.revocation(&owner, &key).into_bytes(), false),
            _ => (format!("{owner}\n{key}").into_bytes(), is_of_process(channel, &owner)),
        }
    }

    /// Of one who waits, or holds the lock; of no one, or of no one in the process that listens.
    fn owner(&mut self, key: &str, channel: &str) -> String {
        let queue = format!("{}:queue:{}", self.namespace, queue_of(key));
        let entries = self.admin.command::<Vec<String>>(&["LRANGE", &queue, "0", "-1"]);
        let waiting = entries.first().and_then(|entry| entry.split_once(' '));
        let waiting = waiting.map(|(_, owner)| owner.to_owned());
        let holding = self.admin.try_command(&["GET", key]).ok();
        let holding = holding.and_then(|value| redis::from_redis_value::<String>(value).ok());
        let nobody = "0123456789abcdef.17500000000000010000000001".to_owned();
        match self.dice.below(5) {
            0 => holding.unwrap_or(nobody),
            1 => nobody,
            2 => process_of(channel).map_or(nobody, |process| format!("{process}.7")),
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

/// Where the owner tokens begin of those who wait in the process that listens.
fn process_of(channel: &str) -> Option<&str> {
    channel.split(':').nth(2)
}

fn is_of_process(channel: &str, owner: &str) -> bool {
    process_of(channel).is_some_and(|process| owner.starts_with(&format!("{process}.")))
}

fn is_of_operators(channel: &str) -> bool {
    channel.contains(":revoke:")
}
