//! Where lock state lives: the contract of a backend, and what its verbs say.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Sleep;

use crate::clock::Moment;
use crate::error::{Cause, LockError, LockErrorKind};
use crate::key::LockKey;
use crate::options::Ttl;
use crate::token::{FencingToken, OwnerToken};

mod memory;
#[cfg(feature = "redis")]
mod redis;
mod url;

pub(crate) use memory::Memory;
#[cfg(feature = "redis")]
pub(crate) use redis::Redis;
pub(crate) use url::{Settings, open};

/// An answer that is on its way. It borrows nothing, so it can outlive the call that asked.
pub(crate) type Reply<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// A place where locks live.
///
/// # Contract
/// - At most one attempt is granted a key at any time of the backend's own clock.
/// - A grant ends when it is released, or `ttl` after it was made, whichever is first.
/// - The same attempt, asked again while it is granted, is granted again: verbs may be repeated.
/// - Fencing tokens of a key rise from grant to grant, also after the backend lost all its data.
/// - `release` of an attempt that is not the holder changes nothing.
/// - A key that holds anything but a lock is left as it is.
///
/// # Cancel safety
/// A dropped `Reply` may or may not have had its effect. [`Attempt::sent_at`] tells whether it can
/// have; the caller keeps such replies until they are answered.
pub(crate) trait Backend: Send + Sync + fmt::Debug + 'static {
    /// Which backend this is, for messages: where it is, without credentials.
    fn name(&self) -> &str;

    /// The time on the clock that this backend's leases are measured by.
    fn now(&self) -> Moment;

    /// A timer that goes with [`now`](Backend::now).
    fn timer(&self, duration: Duration) -> Sleep;

    /// Makes sure that the backend can be used from the calling task.
    fn connect(&self) -> Reply<()>;

    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition>;

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release>;

    /// Tells the backend that the calling task gave up waiting for an answer.
    fn unanswered(&self);

    /// Runs work that must not depend on the caller: never blocks, needs no runtime around it.
    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

/// One acquisition, from before it is asked for until after it is released.
///
/// Its owner token is also the identity of the request: a command that was sent twice finds its
/// own token and succeeds.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerToken,
    pub(crate) ttl: Ttl,
    /// Written by the backend before the first request enters any queue; zero until then.
    sent_at: AtomicU64,
}

impl Attempt {
    pub(crate) fn new(key: LockKey, ttl: Ttl) -> Self {
        Self { key, owner: OwnerToken::next(), ttl, sent_at: AtomicU64::new(0) }
    }

    /// Notes that a request goes out now; gives the time of the first one, which the lease counts from.
    pub(crate) fn mark_sent(&self, now: Moment) -> Moment {
        let first = self.sent_at.compare_exchange(
            0,
            now.as_nanos().max(1),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        Moment::from_nanos(first.map_or_else(|earlier| earlier, |_| now.as_nanos()))
    }

    /// When the first request went out; `None` means that the backend cannot know this attempt.
    pub(crate) fn sent_at(&self) -> Option<Moment> {
        match self.sent_at.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(Moment::from_nanos(nanos)),
        }
    }
}

/// What an attempt came to.
#[derive(Debug)]
pub(crate) enum Acquisition {
    /// The lock is this attempt's, counted from `since`.
    Granted { fencing_token: FencingToken, since: Moment },
    /// Another holder has it.
    Contended,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The lock was this attempt's and is free now.
    Released,
    /// Nobody holds the lock: it expired or was deleted.
    Absent,
    /// Another holder has the lock; it was left alone.
    Taken,
}

/// A backend that gave no usable answer.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: LockErrorKind,
    pub(crate) message: String,
    pub(crate) source: Option<Cause>,
    /// Whether the attempt is certain to hold nothing, so that there is nothing to release.
    pub(crate) proves_absence: bool,
}

impl Fault {
    pub(crate) fn new(kind: LockErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None, proves_absence: false }
    }

    /// A command that was not answered in time.
    pub(crate) fn no_answer(backend: &str, limit: Duration) -> Self {
        Self::new(LockErrorKind::Unavailable, format!("{backend}: no answer within {limit:?}"))
    }
}

impl From<Fault> for LockError {
    fn from(fault: Fault) -> Self {
        Self::new(fault.kind, fault.message).with_source(fault.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lease_counts_from_the_first_request() {
        let attempt = Attempt::new(LockKey::from_static("k"), Ttl::DEFAULT);
        assert_eq!(attempt.sent_at(), None);
        assert_eq!(attempt.mark_sent(Moment::from_nanos(5)), Moment::from_nanos(5));
        assert_eq!(attempt.mark_sent(Moment::from_nanos(9)), Moment::from_nanos(5));
        assert_eq!(attempt.sent_at(), Some(Moment::from_nanos(5)));
    }
}
