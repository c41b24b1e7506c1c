use std::collections::{BTreeSet, HashMap};

use ::redis::{Cmd, FromRedisValue, RedisError, Value};

use super::call::{call, fault, first};
use crate::core::backend::Fault;
use crate::core::types::id::ProcessId;
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Origin, OwnerToken, TokenParts};
use crate::core::types::slot::Slot;
use crate::operators::contract::{Queued, Seen};
use crate::redis::connect::opener::Opener;
use crate::redis::route::Router;
use crate::redis::wire::connection::Connection;

pub(super) async fn queue(router: &Router, key: &LockKey) -> Result<Vec<Queued>, Fault> {
    let entries = QueueEntries::new(Slot::of(key), &entries(router, key).await?);
    let counts = if entries.origins.is_empty() {
        Value::Nil
    } else {
        let numsub = [entries.numsub(&router.topology.opener)];
        router.replies(entries.slot, &numsub).await.map_or(Value::Nil, first)
    };
    Ok(entries.queued(counts))
}

/// Subtracts waiters that no longer listen, as far as this server knows.
pub(super) async fn count_waiting(
    connection: &Connection,
    opener: &Opener,
    seen: &mut [Seen],
) -> Result<(), Fault> {
    let mut seen: Vec<_> = seen.iter_mut().filter(|seen| seen.queued > 0).collect();
    if seen.is_empty() {
        return Ok(());
    }
    let ranges = seen.iter().map(|seen| range(opener, &seen.key));
    let replies = call(connection, ranges).await?;
    let queues = seen.iter().zip(replies).map(|(seen, reply)| {
        // What cannot be read is no one's.
        let entries = read(reply).unwrap_or_else(|_| vec![Vec::new(); seen.queued]);
        QueueEntries::new(Slot::of(&seen.key), &entries)
    });
    let queues: Vec<_> = queues.collect();
    let counts = call(connection, queues.iter().map(|queue| queue.numsub(opener))).await?;
    for ((seen, queue), counts) in seen.iter_mut().zip(queues).zip(counts) {
        seen.queued = queue.queued(counts).iter().filter(|queued| queued.waits()).count();
    }
    Ok(())
}

struct QueueEntries {
    slot: Slot,
    owners: Vec<String>,
    origins: BTreeSet<Origin>,
}

impl QueueEntries {
    fn new(slot: Slot, entries: &[Vec<u8>]) -> Self {
        let owners: Vec<_> = entries.iter().map(|entry| owner_of(entry)).collect();
        let origins = owners.iter().filter_map(|owner| Origin::of(&OwnerToken::received(owner)));
        Self { slot, origins: origins.collect(), owners }
    }

    fn numsub(&self, opener: &Opener) -> Cmd {
        let mut numsub = Cmd::new();
        numsub.arg("PUBSUB").arg(opener.channels.count());
        for origin in &self.origins {
            numsub.arg(opener.channels.of_wake_ups(&opener.namespace, *origin, self.slot));
        }
        numsub
    }

    /// Without an answer it is unknown who listens.
    fn queued(self, counts: Value) -> Vec<Queued> {
        let counts = Vec::<(Value, u64)>::from_redis_value(counts).unwrap_or_default();
        let counts = self.origins.iter().zip(counts);
        let listening: HashMap<_, _> =
            counts.map(|(origin, (_, count))| (*origin, count > 0)).collect();
        let queued = |owner: String| {
            let origin = Origin::of(&OwnerToken::received(&owner));
            let is_listening = origin.and_then(|origin| listening.get(&origin).copied());
            Queued { owner, is_listening }
        };
        self.owners.into_iter().map(queued).collect()
    }
}

async fn entries(router: &Router, key: &LockKey) -> Result<Vec<Vec<u8>>, Fault> {
    let opener = &router.topology.opener;
    let replies = router.replies(Slot::of(key), &[range(opener, key)]).await?;
    read(first(replies)).map_err(|error| fault(opener, &error))
}

fn range(opener: &Opener, key: &LockKey) -> Cmd {
    Cmd::new().arg("LRANGE").arg(opener.namespace.queue(key)).arg(0).arg(-1).to_owned()
}

fn read(reply: Value) -> Result<Vec<Vec<u8>>, RedisError> {
    Ok(Vec::from_redis_value(reply.extract_error()?)?)
}

/// Moves the entries of this process to the front; returns whether there are any.
///
/// Each is added at the front before it is removed at its old place, so it is never missing. If it is granted in
/// between, the added one is removed.
pub(super) async fn advance(
    router: &Router,
    key: &LockKey,
    process: ProcessId,
) -> Result<bool, Fault> {
    let is_own = |entry: &&Vec<u8>| {
        TokenParts::parse(&owner_of(entry)).is_some_and(|parts| parts.process == process)
    };
    let (entries, opener) = (entries(router, key).await?, &router.topology.opener);
    let queue = opener.namespace.queue(key);
    let moves = entries.iter().filter(is_own).rev().flat_map(|entry| {
        let add = Cmd::new().arg("LPUSH").arg(queue).arg(entry).to_owned();
        [add, Cmd::new().arg("LREM").arg(queue).arg(-1).arg(entry).to_owned()]
    });
    let moves: Vec<_> = moves.collect();
    if moves.is_empty() {
        return Ok(false);
    }
    let replies = router.replies(Slot::of(key), &moves).await?;
    let failed = replies.into_iter().find_map(|reply| reply.extract_error().err());
    failed.map_or(Ok(true), |error| Err(fault(opener, &error)))
}

/// An entry is a number of milliseconds, for which it is granted, and an owner token.
fn owner_of(entry: &[u8]) -> String {
    let entry = String::from_utf8_lossy(entry);
    entry.split_once(' ').map_or_else(|| entry.to_string(), |(_, owner)| owner.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_entry_is_listed_whatever_is_counted(
            entries in vec("([0-9]{1,4} )?[0-9a-f]{15,17}[.-][0-9]{0,3}|.{0,9}", 0..4),
            counts in vec(any::<Option<i64>>(), 0..6),
        ) {
            let entries: Vec<_> = entries.into_iter().map(String::into_bytes).collect();
            let queue = QueueEntries::new(Slot::default(), &entries);
            let pairs = counts.into_iter().map(|count| count.map_or(Value::Nil, Value::Int));
            let queued = queue.queued(Value::Array(pairs.collect()));
            let owners = queued.iter().map(|queued| queued.owner.as_bytes());
            prop_assert_eq!(owners.len(), entries.len());
            prop_assert!(owners.zip(&entries).all(|(owner, entry)| entry.ends_with(owner)));
        }
    }
}
