//! What an operator sends to a holder, as the fourth part of a backend's contract.
//!
//! See "How does a revoke request reach its holder by pub/sub?" in DESIGN.md.

use std::future::ready;

use super::attempt::Release;
use super::fault::Reply;
use crate::types::id::ProcessId;
use crate::types::key::LockKey;
use crate::types::reason::Reason;

/// How operators reach holders.
///
/// # Contract
/// - A message is about one owner token: no other hold of the same lock is touched.
/// - It may be lost, and it may come twice.
///
/// # Cancel safety
/// A dropped `Reply` may or may not have had its effect.
pub(crate) trait Revoking {
    /// Sends a message to the process that has the lock.
    fn send(&self, revocation: Revocation) -> Reply<Audience>;

    /// Moves the places of a process to the front of a queue; says whether it has any there. In memory all are of one
    /// process.
    fn advance(&self, _key: LockKey, _process: ProcessId) -> Reply<bool> {
        Box::pin(ready(Ok(true)))
    }

    /// Ends the hold under a key whose owner is exactly this value, of this library or not, and hands the lock on as
    /// a release does.
    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release>;
}

/// A message of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revocation {
    pub(crate) verb: Verb,
    /// What the holder wrote.
    pub(crate) owner: String,
    pub(crate) key: LockKey,
    pub(crate) reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// The holder is asked to stop and release.
    Revoke,
    /// The lock was taken away.
    Forced,
}

/// Who has heard a message, as far as the backend knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The process listens; whether it has that lock is not known.
    Listens,
    /// No process listens to it.
    Silence,
    /// A node of a cluster does not know who listens at the others.
    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "in memory it is known"))]
    Unknown,
}
