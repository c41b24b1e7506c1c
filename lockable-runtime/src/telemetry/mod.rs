//! What a lock tells about itself: spans and events through [`tracing`], and numbers through the
//! `metrics` facade, with the feature of that name.
//!
//! # Spans and events
//!
//! All have the target `lockable`. `waited` and `held` are seconds, as floating-point numbers.
//!
//! | level | name | kind | fields | when |
//! |---|---|---|---|---|
//! | debug | `acquire` | span | `key`, `outcome`, `waited`, `fencing_token` | a call asks for its lock, until it has it or gives up |
//! | debug | `acquire` | event | the same | its end; without `waited` and `fencing_token` where it was not granted |
//! | info | `acquire` | event | `key` | a decorated call found another holder and skips its body |
//! | warn | `acquire` | event | `key`, `waited` | the wait limit was reached, and another holder has the lock |
//! | error | `acquire` | event | `key`, `error` | a decorated call failed, and its return type has no place for that |
//! | debug | `wait` | span | `key`, `waited` | a call stands in line, inside of its `acquire` |
//! | warn | `wait` | event | `key`, `waited` | a call has waited for [long](crate::LockerBuilder::warn_waited_over), and waits on |
//! | debug | `hold` | span | `key`, `fencing_token`, `held`, `outcome` | the lock is held; the body runs inside |
//! | debug | `hold` | event | the same | its end: the release begins |
//! | warn | `hold` | event | `key`, `held`, `share` | a body without `renew` used [most of its lease](crate::LockerBuilder::warn_held_over) |
//! | debug | `renew` | span | `leases` | one command renews so many leases |
//! | trace | `renew` | event | `key`, `fencing_token`, `outcome` | what was answered for one of them |
//! | warn | `renew` | event | `leases`, `error` | no answer came; it is tried again |
//! | debug | `release` | span | `key`, `outcome` | a release is on its way, by the holder or in the background |
//! | debug | `release` | event | the same | its end, or the lock went to the next of this process without a request |
//! | debug | `release` | event | `key` | a guard was dropped, and its release is sent in the background |
//! | warn | `release` | event | `key`, `taken` | the lock that was to be released was gone |
//! | warn | `release` | event | `key`, `error` | a release was given up; the lock ends with its lease |
//! | warn | `lost` | event | `key`, `fencing_token`, `reason` | the lock was lost |
//! | error | `lost` | event | `key` | a body completed although its lock was lost |
//!
//! The `outcome` of `acquire` is `granted`, `busy`, `wait_limit`, `failed` or `cancelled`; of `hold`
//! `released` or `lost`; of `renew` `renewed`, `absent` or `taken`; of `release` `released`, `passed` (to
//! the next of this process), `absent`, `taken` or `unanswered`. The `reason` of a loss is `deadline`,
//! `absent` or `taken`.
//!
//! The body of [`run`](crate::LockRequest::run) and of a decorated function runs inside the span
//! `hold`, so that what it tells itself can be read with the key and the fencing token. Code under a guard
//! that is held by hand runs in its own spans only; the span `hold` is their sibling then. A span of
//! `#[tracing::instrument]` is inside of `hold` when that is written above `#[distributed_lock]`, and
//! around `acquire` and `hold` when it is written below. The spans are at debug level, because they
//! would stand before every line that a body logs.
//!
//! Each call that fails is an event of its own: while a server is down, a busy service writes as many lines
//! as it makes calls. A subscriber that limits repeated lines is the place to bound them.
//!
//! # Metrics
//!
//! | metric | kind | labels | counts |
//! |---|---|---|---|
//! | `lockable.acquire` | counter | `outcome` as above | calls that asked for a lock |
//! | `lockable.acquire.wait` | histogram, seconds | | how long calls stood in line that found another holder, however that ended |
//! | `lockable.waiters` | gauge | | calls that stand in line now |
//! | `lockable.handoff` | counter | `by`: `queue`, `local` | grants that came by the queue, or from the holder before in this process |
//! | `lockable.hold` | histogram, seconds | | how long locks were held, from the grant to the beginning of the release |
//! | `lockable.renewal` | counter | `outcome` as above, and `unanswered` | renewals, one for each lease and try |
//! | `lockable.lost` | counter | `reason` as above | locks that were lost |
//! | `lockable.completed_after_loss` | counter | | bodies that completed although their lock was lost |
//! | `lockable.release` | counter | `outcome` as above | releases, one for each try |
//! | `lockable.release.abandoned` | counter | | releases that were given up |
//! | `lockable.release.backlog` | gauge | | releases that wait in the background now |
//!
//! The key is never a label: there are as many keys as orders. Units and texts are described to the
//! recorder when a locker is made, so install the recorder before.
//!
//! # Hidden keys
//!
//! With [`redact_keys`](crate::LockerBuilder::redact_keys) events, spans, the messages of [`LockError`] and of
//! its sources, and `{:?}` of guards, leases and requests show `hidden:` and a number instead of the key:
//! the same for one key within this process, another one in the next. [`LockError::key`],
//! [`LockGuard::key`](crate::LockGuard::key), a [`LockKey`] and the backend have the key
//! itself.
//!
//! Owner tokens are never shown, hidden keys or not, because they release locks. A server that refuses a
//! command may quote its arguments; that part of its answer is left out.
//!
//! ```
//! # async fn example() -> Result<(), lockable_runtime::LockError> {
//! use std::time::Duration;
//! use lockable_runtime::Locker;
//!
//! let locker = Locker::builder()
//!     .url("memory://")
//!     .redact_keys()
//!     .warn_held_over(Some(0.5))
//!     .warn_waited_over(Some(Duration::from_secs(2)))
//!     .connect()
//!     .await?;
//! let _held = locker.lock("mail:ada@example.org").acquire().await?;
//! let error = locker.lock("mail:ada@example.org").acquire().await.unwrap_err();
//! assert!(!error.to_string().contains("ada"));
//! assert_eq!(error.key(), Some("disLock:mail:ada@example.org"));
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! # What it costs
//!
//! Nothing that can be measured, while nobody listens: a span or an event that no subscriber wants is a
//! load of one atomic number, and its fields are not computed. An uncontended lock reads the clock as
//! often as without all this, because times are taken from the lease. A test counts what a pair of
//! acquiring and releasing allocates, and holds it where it was before.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use tracing::{Span, debug, error, info, warn};

pub(crate) use self::acquiring::{Acquiring, Waiting};
pub(crate) use self::holding::{Hold, releasing, renewed, renewing};
use crate::types::error::LockError;
use crate::types::redact::Shown;
use crate::types::token::FencingToken;

mod acquiring;
#[cfg(feature = "metrics")]
mod counters;
#[cfg(not(feature = "metrics"))]
#[path = "no_counters.rs"]
mod counters;
mod holding;

const TARGET: &str = "lockable";

/// Tells the recorder what the numbers are.
pub(crate) fn describe() {
    counters::describe();
}

/// Polls the future inside of the span, where it lies: to hand it on would copy all of it.
pub(crate) async fn inside<F: Future>(span: &Span, mut future: Pin<&mut F>) -> F::Output {
    poll_fn(|cx| span.in_scope(|| future.as_mut().poll(cx))).await
}

/// A decorated call found another holder and skips its body.
pub(crate) fn skipped(error: &LockError) {
    let key = error.shown_key();
    info!(name: "acquire", target: TARGET, key = key.map(Shown::text).as_deref(),
        "another holder has the lock; the call is skipped");
}

/// A call gave up waiting.
pub(crate) fn wait_limit_reached(key: Shown<'_>, waited: Duration) {
    warn!(name: "acquire", target: TARGET, key = &*key.text(), waited = waited.as_secs_f64(),
        "the wait limit was reached; another holder has the lock");
}

/// A call waits for longer than its locker's users want to wait in silence.
pub(crate) fn waits_long(key: Shown<'_>, waited: Duration) {
    warn!(name: "wait", target: TARGET, key = &*key.text(), waited = waited.as_secs_f64(),
        "the call waits for long; another holder has the lock");
}

/// A failure that the return type of a decorated function has no place for.
///
/// See "Why is `tracing` not optional?" in DESIGN.md.
pub(crate) fn swallowed(error: &LockError) {
    let key = error.shown_key();
    error!(name: "acquire", target: TARGET, key = key.map(Shown::text).as_deref(), %error,
        "the call gives nothing back");
}

/// A lock came from another holder: of this process, or through the queue.
pub(crate) fn handed_on(is_local: bool) {
    counters::handed_on(is_local);
}

/// A guard was dropped: nobody waits for its release.
pub(crate) fn release_deferred(key: Shown<'_>) {
    debug!(name: "release", target: TARGET, key = &*key.text(),
        "the guard was dropped, and its release is sent in the background; `release().await`, or \
         `shutdown` at the end of `main`, waits for it");
}

/// The lock went to the next call of this process, without a request.
pub(crate) fn passed_on(key: Shown<'_>) {
    debug!(name: "release", target: TARGET, key = &*key.text(), outcome = "passed",
        "the lock went to the next of this process");
    counters::released("passed");
}

/// A holder can no longer be sure that it holds; told once a lease, when that is found.
pub(crate) fn lost(key: Shown<'_>, token: FencingToken, reason: &'static str, why: &str) {
    warn!(name: "lost", target: TARGET, key = &*key.text(), fencing_token = u64::from(token), reason,
        "the lock was lost: {why}");
    counters::lost(reason);
}

/// A body came to its end although its lock was lost: its effects may overlap with another's.
pub(crate) fn completed_after_loss(key: Shown<'_>) {
    error!(name: "lost", target: TARGET, key = &*key.text(),
        "the body completed after the lock was lost");
    counters::completed_after_loss();
}

/// Renewals without an answer: neither renewed nor lost, and tried again.
pub(crate) fn renewal_unanswered(leases: usize, error: &str) {
    warn!(name: "renew", target: TARGET, leases, error,
        "a renewal was not answered, and is tried again");
    counters::renewed("unanswered", u64::try_from(leases).unwrap_or(u64::MAX));
}

/// A release at the end of a body found that the lock was not its own any more.
pub(crate) fn released_too_late(key: Shown<'_>, taken: bool) {
    let what = if taken {
        "another holder has the lock that was to be released; it was left alone"
    } else {
        "the lock that was to be released had expired or was deleted"
    };
    warn!(name: "release", target: TARGET, key = &*key.text(), taken, "{what}");
}

/// A release gave up: the lock stays until its lease ends in the backend.
pub(crate) fn release_abandoned(key: Shown<'_>, error: &str) {
    let error = &*key.within(error);
    warn!(name: "release", target: TARGET, key = &*key.text(), error,
        "the lock could not be released and ends with its lease");
    counters::release_abandoned();
}

/// One more release waits in the background.
pub(crate) fn backlog_grows() {
    counters::backlog(1.0);
}

/// One release less waits in the background.
pub(crate) fn backlog_shrinks() {
    counters::backlog(-1.0);
}
