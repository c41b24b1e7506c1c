//! The contract of a store: what the core needs of it, and nothing that an operator needs.
//!
//! A store is a type with the ten verbs of a [`Backend`] and the methods of an [`Environment`], and an arm in
//! `open.rs`. `tests/contract/fixture/stub_store.rs` is the smallest one. See "Why does a store have two contracts?" in
//! DESIGN.md.
//!
//! | verb | what the store does |
//! |---|---|
//! | [`try_acquire`](Backend::try_acquire) | gives a lock that is free, or the attempt's own, to the attempt, with one fencing token; it looks at no queue |
//! | [`enqueue`](Backend::enqueue) | grants a lock that is reserved for the attempt, or free with no one before it in the queue, for the whole TTL, with the fencing tokens of a turn ([`Reserved::turn`]); hands a free lock off to the first in the queue, if that is another; otherwise puts the attempt at the end of the queue, once |
//! | [`leave`](Backend::leave) | takes the attempt out of the queue, and hands its lock off if it has one, whatever its minimum hold is |
//! | [`release`](Backend::release) | frees the lock, or leaves it taken for [`min_hold.rest`](Attempt::min_hold), and for a second longer while attempts are queued; a lock that is free then is handed off |
//! | [`release_to`](Backend::release_to) | first puts another attempt at the end of the queue, in the same step, even if the first attempt is not the holder; grants it the lock if it is the first there, or has the lock already |
//! | [`renew`](Backend::renew) | lets each lock last for a TTL from now, never shorter; without a TTL it only says whether the attempt has it |
//! | [`transfer`](Backend::transfer) | gives the lock of one owner token to another, for its whole TTL; says that it is held if the other one has it already |
//! | [`count_fence`](Backend::count_fence) | gives away one more fencing token, whether the lock is held or not |
//! | [`inspect`](Backend::inspect) | reads what has a lock: an owner token, with `~` in front of one that a minimum hold leaves taken, or data of another library |
//! | [`is_any_taken`](Backend::is_any_taken) | reads whether anything is under one of several keys |
//!
//! To hand a lock off is to reserve it for the first in the queue whose process listens, for
//! [`reservation`](Attempt::reservation), and to send that a [`WakeUp`]. A store that can send none may leave the lock
//! free.
//!
//! # Rules for every verb
//! - Right before it sends a request that can make an attempt the holder, the store calls [`Attempt::mark_sent`]; for a
//!   renewal [`Renewal::new`] does. Otherwise no deadline runs, and what was granted late is not released.
//! - [`Grant::answered`] takes the moment that `mark_sent` returned for `try_acquire`, which may be repeated and counts
//!   from the first request; and the moment of this request for all others.
//! - An attempt that [`is_withdrawn`](Attempt::is_withdrawn) when its request is sent is not queued any more: a store
//!   whose verbs are done at once never meets that.
//! - If the store finds a pause, a ticket or a minimum hold, it passes the value to [`Attempt::mark_busy`]; otherwise
//!   the error of a busy lock does not say what has it.
//! - If the effect of a request is unknown, the answer is a [`Fault`], and never that the lock is absent. A fault with
//!   [`proves_absence`](Fault::proves_absence) says that nothing was done. One that is not
//!   [`Unavailable`](crate::LockErrorKind::Unavailable) ends all calls that wait.
//! - A released attempt is never granted again: its owner token is not used for another acquisition.
//!
//! An attempt with a [`local_permit`](Attempt::local_permit) wants any of the locks of
//! [`members`](crate::core::types::permit::LocalPermit::members), which have one queue. A store may refuse it, in each
//! verb, by a fault of the kind [`Refused`](crate::LockErrorKind::Refused).
//!
//! The clock of [`now`](Environment::now) is that of this process, never that of a server: it does not go back, and
//! runs on while the machine is suspended.

use std::any::Any;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use crate::core::backend::epochs::Epoch;
use crate::core::process::clock::Moment;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::{Held, Origin, ReleasedBy};
use crate::core::types::slot::Slot;

mod attempt;
mod context;
pub(crate) mod epochs;
mod events;
mod fault;
mod grant;
mod min_hold;

pub(crate) use attempt::{Attempt, Release};
pub(crate) use context::{BackendContext, Outcome, Query, TestStage};
pub(crate) use events::{Danger, Events, Revocation, Verb, WakeUp};
pub(crate) use fault::{Fault, Reply};
pub(crate) use grant::{Grant, Reserved};

/// A place where locks live: the verbs that read and change them.
///
/// # Contract
/// - At most one attempt is granted a key at any time of the backend's own clock.
/// - A grant ends when it is released, or `ttl` after it was made or last renewed, whichever is first.
/// - An attempt that requests again while it is granted is granted again: verbs may be repeated.
/// - Fencing tokens of a key rise from grant to grant, also after the backend lost all its data: a counter that is gone
///   starts above the last one, as at the time in microseconds.
/// - `renew` moves the end of a grant only forwards, and makes nothing that is not there.
/// - `transfer` gives a lock to the other attempt only if this one has it, and fencing tokens stay as they are.
/// - `release` of an attempt that is not the holder changes no lock: the owner token proves the right to it. What a
///   minimum hold leaves taken has no holder who could renew it.
/// - A key that holds anything but a lock is left as it is.
///
/// # Cancel safety
/// A dropped `Reply` may or may not have had its effect. [`Attempt::sent_at`] says whether it can have; the caller
/// keeps such replies until they are answered.
pub(crate) trait Backend: Environment + Any {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<AcquireReply>;

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release>;

    /// Releases, and queues another attempt of this process; returns the grant of that if its turn has come at once.
    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)>;

    /// Renews or checks leases; returns one outcome for each, in their order. A fault that concerns one lease leaves
    /// the others as they are.
    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>>;

    /// Gives a lock from one owner token to another: to a ticket, or to its holder.
    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Transferred>;

    /// No fencing token of the lock is above the count.
    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64>;

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued>;

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()>;

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>>;

    /// Whether anything is under one of these keys, which are in one slot.
    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool>;
}

/// Where a backend is and what it runs on.
pub(crate) trait Environment: Send + Sync + 'static {
    /// Where the backend is, for messages, without credentials.
    fn name(&self) -> &str;

    /// Identity of the store: equal for two backends if they reach the same one, as far as can be known.
    fn store(&self) -> &str;

    fn now(&self) -> Moment;

    /// A timer on the clock of [`now`](Environment::now).
    fn timer(&self, duration: Duration) -> Sleep;

    /// Runs work that must not depend on the caller: never blocks, needs no runtime around it.
    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// The runtime that renews the caller's leases: not the caller's own if that is blocked.
    fn renewal_runtime(&self, caller_blocks: bool) -> Handle;

    fn connect(&self) -> Reply<()> {
        Box::pin(ready(Ok(())))
    }

    /// Reports to `events` from now on what happens to connections, renewed locks and holders, as far as the backend
    /// learns of it, and the wake-ups of the attempts of that origin. Each locker calls it once; a store that several
    /// lockers share keeps them all.
    fn report_to(&self, origin: Origin, events: Weak<dyn Events>);

    /// The server of these locks: the renewals of one server go together.
    fn server_index(&self, _: Slot) -> usize {
        0
    }

    /// How the holder of a lock that is acquired now is to release it.
    fn released_by(&self) -> ReleasedBy {
        ReleasedBy::Script
    }

    /// Starts to watch what others do with the locks that are held here; never waits.
    fn watch_holders(&self) {}

    /// The fault of a request about such a lock on which the calling task gave up after this time.
    fn unanswered(&self, _: Slot, waited: Duration) -> Fault {
        Fault::no_answer(self.name(), waited)
    }
}

pub(crate) enum AcquireReply {
    Granted(Grant),
    Busy,
    /// No one is at work: a `once` call ended well, and its period is not over.
    Done,
}

#[derive(Clone)]
pub(crate) struct Renewal {
    pub(crate) attempt: Arc<Attempt>,
    /// How long it is to last from now; `None` only asks whether it is still held.
    pub(crate) ttl: Option<Ttl>,
}

impl Renewal {
    pub(crate) fn new(attempt: &Arc<Attempt>, ttl: Option<Ttl>, now: Moment) -> Self {
        if let Some(ttl) = ttl {
            attempt.mark_renewed(now, ttl);
        }
        Self { attempt: Arc::clone(attempt), ttl }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// The lock is this attempt's, and lasts for the TTL or longer.
    Held,
    /// It expired or was deleted.
    Absent,
    /// Another holder has the lock, or other data is there; it was left alone.
    Taken,
}

/// The answer to a [`transfer`](Backend::transfer).
pub(crate) struct Transferred {
    pub(crate) found: Renewed,
    /// The epoch of the server that answered, where it can be left for another one, which may not know the transfer.
    pub(crate) epoch: Option<Arc<Epoch>>,
}

impl From<Renewed> for Transferred {
    fn from(found: Renewed) -> Self {
        Self { found, epoch: None }
    }
}

pub(crate) enum Enqueued<G = Grant> {
    Granted(G),
    Queued(Remaining),
    /// Queued as well, for a lock that is done.
    Done(Remaining),
}

/// How long a lock stays taken, unless that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    Time(Duration),
    /// Until another request ends that.
    Endless,
    /// The answer does not say it.
    Unknown,
}
