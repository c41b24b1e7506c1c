//! What the server has when no lock is held.

use std::collections::BTreeMap;

use lockable_benches::Bound::{self, AtMost};
use redis::Connection;

/// All of its keys.
#[derive(Default)]
pub(crate) struct Left {
    keys: u32,
    without_ttl: u32,
    /// By `MEMORY USAGE`.
    bytes: f64,
    /// By what is in front of the braces.
    kinds: BTreeMap<String, u32>,
}

impl Left {
    pub(crate) fn look(connection: &mut Connection) -> Self {
        let (mut left, mut cursor) = (Self::default(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("COUNT").arg(1_000);
            let (next, keys): (u64, Vec<String>) = scan.query(connection).expect("an answer");
            left.add(connection, &keys);
            cursor = next;
            if cursor == 0 {
                return left;
            }
        }
    }

    fn add(&mut self, connection: &mut Connection, keys: &[String]) {
        let mut questions = redis::pipe();
        for key in keys {
            questions.cmd("MEMORY").arg("USAGE").arg(key).cmd("PTTL").arg(key);
        }
        let answers: Vec<Option<i64>> = questions.query(connection).expect("answers");
        for (key, answers) in keys.iter().zip(answers.chunks(2)) {
            let [bytes, ttl] = answers else { panic!("two answers a key") };
            self.keys += 1;
            self.without_ttl += u32::from(*ttl == Some(-1));
            self.bytes += f64::from(u32::try_from(bytes.unwrap_or(0)).expect("a small key"));
            let kind = key.split('{').next().unwrap_or_default();
            *self.kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
}

/// `grown` is how many bytes the server has more.
pub(crate) fn print(used: u32, grown: f64, left: &Left) {
    let Left { keys, without_ttl, bytes, kinds } = left;
    println!("### What {used} distinct keys leave, no lock held\n");
    println!("| keys left | without a TTL | their bytes | bytes that the server has more |");
    println!("|---|---|---|---|");
    println!("| {keys} | {without_ttl} | {bytes:.0} | {grown:.0} |\n");
    for (kind, count) in kinds {
        println!("- `{kind}{{…}}`: {count}");
    }
    println!("\nGoals:\n");
    let goal = |what, bound: Bound, result| println!("- {what} {bound}: {}", bound.verdict(result));
    goal("keys left", AtMost(16_384.0), f64::from(*keys));
    goal("bytes that the server has more", AtMost(3_000_000.0), grown);
    goal("keys without a TTL", AtMost(0.0), f64::from(*without_ttl));
}
