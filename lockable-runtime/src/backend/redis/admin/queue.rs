//! Who waits for a lock.

use std::collections::{BTreeSet, HashMap};

use ::redis::{Cmd, FromRedisValue, Value};

use super::call::{fault, first};
use crate::backend::redis::route::Router;
use crate::backend::{Fault, Queued};
use crate::types::key::LockKey;
use crate::types::owner::{ProcessId, TokenParts};
use crate::types::slot::Slot;
use crate::types::token::{Origin, OwnerToken};

/// The entries of a lock's queue, the next one first.
pub(super) async fn queue(router: &Router, key: &LockKey) -> Result<Vec<Queued>, Fault> {
    let entries = entries(router, key).await?;
    let owners: Vec<_> = entries.iter().map(|entry| owner_of(entry)).collect();
    let origins = owners.iter().filter_map(|owner| Origin::of(&OwnerToken::received(owner)));
    let listening = listening(router, Slot::of(key), &origins.collect()).await;
    let queued = |owner: String| {
        let origin = Origin::of(&OwnerToken::received(&owner));
        let is_listening = origin.and_then(|origin| listening.get(&origin).copied());
        Queued { owner, is_listening }
    };
    Ok(owners.into_iter().map(queued).collect())
}

async fn entries(router: &Router, key: &LockKey) -> Result<Vec<Vec<u8>>, Fault> {
    let namespace = &router.topology.opener.namespace;
    let range = Cmd::new().arg("LRANGE").arg(namespace.queue(key)).arg(0).arg(-1).to_owned();
    let replies = router.replies(Slot::of(key), &[range]).await?;
    let entries = first(replies).extract_error();
    let entries = entries.and_then(|entries| Ok(Vec::<Vec<u8>>::from_redis_value(entries)?));
    entries.map_err(|error| fault(&router.topology.opener, &error))
}

/// Moves the entries of this process to the front; says whether there are any.
///
/// Each is added in front before it is removed at the end, so that it is never missing. One that is granted in between is
/// there no more, and what was added is removed.
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

/// An entry is for how many milliseconds it is granted, and its owner token.
fn owner_of(entry: &[u8]) -> String {
    let entry = String::from_utf8_lossy(entry);
    entry.split_once(' ').map_or_else(|| entry.to_string(), |(_, owner)| owner.to_owned())
}

/// Whether each of these origins is listened for; none of those of which that is unknown.
async fn listening(
    router: &Router,
    slot: Slot,
    origins: &BTreeSet<Origin>,
) -> HashMap<Origin, bool> {
    if origins.is_empty() {
        return HashMap::new();
    }
    let opener = &router.topology.opener;
    let mut numsub = Cmd::new();
    numsub.arg("PUBSUB").arg(opener.channels.count());
    for origin in origins {
        numsub.arg(opener.channels.of_grants(&opener.namespace, *origin, slot));
    }
    let Ok(replies) = router.replies(slot, &[numsub]).await else { return HashMap::new() };
    let counts = Vec::<(Value, u64)>::from_redis_value(first(replies)).unwrap_or_default();
    origins.iter().zip(counts).map(|(origin, (_, count))| (*origin, count > 0)).collect()
}
