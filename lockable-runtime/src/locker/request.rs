//! The request for one lock: its terms, and the ways to acquire it.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Backend;
use crate::hold::guard::LockGuard;
use crate::hold::reentry::holds;
use crate::hold::run::Run;
use crate::locker::acquire::{Acquirer, Wanted};
use crate::request_id::RequestId;
use crate::telemetry::{self, Acquiring};
use crate::types::clock::{Moment, within};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::options::{OnLost, Terms, Ttl, Wait};
use crate::types::redact::DisplayKey;
use crate::types::reporting::Reporting;

/// A request for one lock, made by [`Locker::lock`](crate::Locker::lock).
///
/// # Examples
/// A job that may take long, but not for ever, and that runs once however close its triggers are:
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// # use std::time::Duration;
/// # let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let rows = locker
///     .lock("job:nightly")
///     .expire(Duration::from_secs(30))
///     .renew()
///     .max_hold(Duration::from_secs(3_600))
///     .min_hold(Duration::from_secs(20))
///     .run(async { 41 + 1 })
///     .await?;
/// # assert_eq!(rows, 42);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[must_use = "a request does nothing until it is acquired"]
pub struct LockRequest {
    acquirer: Arc<Acquirer>,
    key: Result<LockKey, LockError>,
    terms: Result<Terms, LockError>,
    /// The one that was current when this was made: a sync function's is acquired on another thread.
    identity: Option<RequestId>,
    caller_blocks: bool,
}

impl LockRequest {
    pub(crate) fn new(acquirer: Arc<Acquirer>, key: Result<LockKey, LockError>, ttl: Ttl) -> Self {
        let (terms, identity) = (Ok(Terms::new(ttl)), RequestId::current());
        Self { acquirer, key, terms, identity, caller_blocks: false }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        self.acquirer.backend()
    }

    pub(crate) fn reporting(&self) -> &Reporting {
        self.acquirer.reporting()
    }

    /// How long the lease is, in whole milliseconds; the locker's `expire` by default, at least
    /// 10 ms.
    pub fn expire(self, expire: Duration) -> Self {
        self.with(|terms| {
            terms.ttl = Ttl::new("expire", expire)?;
            Ok(())
        })
    }

    /// Keeps the lease alive for as long as the lock is held; off by default.
    ///
    /// It is renewed in the background, first after a third of `expire`, and then from renewal to
    /// renewal. A renewal that is not answered is tried again: there are five tries at least before the
    /// lease ends, three where it is shorter than 200 ms. When the process dies, the lock is free after
    /// `expire`.
    ///
    /// # What this does not guarantee
    /// A body that hangs holds its lock for ever, and so does a guard that is leaked by
    /// [`mem::forget`](std::mem::forget); set a [`max_hold`](LockRequest::max_hold).
    ///
    /// With `memory://` a lease is renewed on the runtime that acquired it, and ends when that is blocked
    /// or is no more.
    pub fn renew(self) -> Self {
        self.with(|terms| {
            terms.renew = true;
            Ok(())
        })
    }

    /// The longest that a renewed lock is held, counted from its grant; without a limit by default.
    ///
    /// Then the body of [`run`](LockRequest::run) is dropped and the lock is released. A guard that
    /// is held by hand is told by [`lost`](LockGuard::lost), and is not renewed any more. Needs
    /// [`renew`](LockRequest::renew).
    pub fn max_hold(self, most: Duration) -> Self {
        self.with(|terms| {
            terms.max_hold = Some(most);
            Ok(())
        })
    }

    /// The shortest that the lock is taken, counted from its grant; at most `expire`.
    ///
    /// A release before that leaves the lock taken for the rest, whatever the outcome of the work,
    /// and returns at once. So a scheduled job runs once although the clocks that trigger it on
    /// several machines differ. While calls wait, it then stays taken until the first of them has it,
    /// a second at most.
    pub fn min_hold(self, least: Duration) -> Self {
        self.with(|terms| {
            terms.min_hold = Some(least);
            Ok(())
        })
    }

    /// Waits at most so long for a lock that another holder has; without a limit by default.
    ///
    /// The limit counts from the start of the call. It never cuts the first try short, which ends by its
    /// own deadlines, so a limit of zero is one try. At the limit the call is
    /// [`is_wait_limit_reached`](LockError::is_wait_limit_reached) where a server said that another holder
    /// has the lock, or this locker holds it; where the last thing that is known is a failure, it is
    /// [`is_unavailable`](LockError::is_unavailable).
    ///
    /// Not for [`try_acquire`](LockRequest::try_acquire) and [`try_run`](LockRequest::try_run), which never
    /// wait.
    pub fn wait_at_most(self, limit: Duration) -> Self {
        self.with(|terms| {
            terms.wait = Wait::AtMost(limit);
            Ok(())
        })
    }

    /// Makes the lock pass to another process that waits, after this holder: slower, and fair from holder
    /// to holder.
    ///
    /// Not for [`try_acquire`](LockRequest::try_acquire) and [`try_run`](LockRequest::try_run), which have
    /// no turn.
    pub fn fair(self) -> Self {
        self.with(|terms| {
            terms.fair = true;
            Ok(())
        })
    }

    /// What happens to the body of [`run`](LockRequest::run) when the lock is lost; it is stopped by
    /// default.
    pub fn on_lost(self, on_lost: OnLost) -> Self {
        self.with(|terms| {
            terms.on_lost = on_lost;
            Ok(())
        })
    }

    /// Tries once instead of waiting: for the attribute without `wait`, and for the `try_` verbs.
    pub(crate) fn once(self) -> Self {
        self.with(Terms::try_once)
    }

    /// Changes the terms; the first mistake stays.
    fn with(mut self, change: impl FnOnce(&mut Terms) -> Result<(), LockError>) -> Self {
        if let Ok(terms) = &mut self.terms
            && let Err(mistake) = change(terms)
        {
            self.terms = Err(mistake);
        }
        self
    }

    /// For a caller whose thread waits for the answer, and then does nothing but its body.
    ///
    /// # Errors
    /// When that caller holds the lock itself, which nothing else can see, or was forked from the process
    /// that made the locker.
    pub(crate) fn blocking(mut self) -> Result<Self, LockError> {
        self.refuse()?;
        self.caller_blocks = true;
        Ok(self)
    }

    /// The lock's whole name, where the call may wait for it.
    pub(crate) fn waits_for(&self) -> Option<&LockKey> {
        let waits = self.terms.as_ref().is_ok_and(|terms| terms.wait != Wait::Never);
        self.key.as_ref().ok().filter(|_| waits)
    }

    /// Refuses what was made before a fork, and what the calling body holds already.
    fn refuse(&self) -> Result<(), LockError> {
        self.acquirer.own()?;
        match &self.key {
            Ok(key) if holds(self.backend().store(), key) => {
                Err(self.reporting().redact(LockError::held_by_caller(key.as_str())))
            }
            _ => Ok(()),
        }
    }

    /// Acquires the lock; while another holder has it, the call waits in a FIFO queue.
    ///
    /// A lock that is free costs what one try costs. Waiters of one process are served in the order of
    /// arrival, and processes in turns. A turn is one grant and at most sixteen passes within the process
    /// and within five milliseconds; with [`fair`](LockRequest::fair) it is one grant.
    ///
    /// The wait has no limit but for [`wait_at_most`](LockRequest::wait_at_most);
    /// [`try_acquire`](LockRequest::try_acquire) does not wait. The attribute tries once, unless it has
    /// `wait`.
    ///
    /// # Errors
    /// - [`is_wait_limit_reached`](LockError::is_wait_limit_reached) when another holder has it until the
    ///   limit.
    /// - [`is_held_by_caller`](LockError::is_held_by_caller) when this is called from inside of the
    ///   body that holds it.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend gives no answer to the first try
    ///   within its deadline, or refuses; while the call waits, after 30 seconds in which the backend gave
    ///   no answer, and after five leases that were over when the call heard of them, because its `expire`
    ///   is shorter than the way to the server and back. The lock is not held then; a request that may
    ///   still land is released in the background.
    /// - [`is_wrong_type`](LockError::is_wrong_type) when the key holds data that is no lock.
    /// - [`is_invalid_key`](LockError::is_invalid_key) and
    ///   [`is_invalid_option`](LockError::is_invalid_option), before anything is sent.
    /// - [`is_not_configured`](LockError::is_not_configured), at once, when the locker was made before the
    ///   process was forked; see [`Locker`](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue, and no lock behind: what a request on its way is granted is
    /// released in the background. When the connection breaks as well, the lock can remain for `expire`.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        let reporting = *self.reporting();
        let contended = |key: LockKey| reporting.redact(LockError::busy(key.as_str()));
        self.grant_or_key().await?.map_err(contended)
    }

    /// Acquires the lock in one try; `None` when another holder has it.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::acquire), but for the wait limit; and
    /// [`is_invalid_option`](LockError::is_invalid_option) with
    /// [`wait_at_most`](LockRequest::wait_at_most) or [`fair`](LockRequest::fair), which are for calls that
    /// wait.
    ///
    /// # Cancel safety
    /// As [`acquire`](LockRequest::acquire).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// if let Some(guard) = locker.lock("job:nightly").try_acquire().await? {
    ///     // … the nightly job …
    ///     guard.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn try_acquire(self) -> Result<Option<LockGuard>, LockError> {
        self.once().grant_or_key().await.map(Result::ok)
    }

    /// The guard, or the key that another holder has.
    async fn grant_or_key(self) -> Result<Result<LockGuard, LockKey>, LockError> {
        let reporting = *self.reporting();
        let (acquirer, wanted) = self.checked().map_err(|error| reporting.redact(error))?;
        let acquiring = Acquiring::start(reporting.show(&wanted.key));
        let asking = pin!(ask(&acquirer, wanted));
        match telemetry::inside(acquiring.span(), asking).await {
            Ok(Ok(guard)) => Ok(Ok(guard.begin(acquiring))),
            Ok(Err(key)) => {
                acquiring.busy(reporting.show(&key));
                Ok(Err(key))
            }
            Err(error) => {
                let error = reporting.redact(error);
                acquiring.failed(&error);
                Err(error)
            }
        }
    }

    /// What is asked for, or what nobody can be asked.
    fn checked(self) -> Result<(Arc<Acquirer>, Wanted), LockError> {
        self.refuse()?;
        let key = self.key?;
        let identity = RequestId::current().or(self.identity);
        let terms = self.terms.and_then(Terms::checked);
        let terms = terms.map_err(|error| error.with_key(key.as_str()))?;
        let caller_blocks = self.caller_blocks;
        Ok((self.acquirer, Wanted { key, terms, identity, caller_blocks }))
    }

    /// Acquires the lock, runs the body while the lease is held, and releases.
    ///
    /// The body is not polled after the lease's deadline, nor after a renewal that found the lock
    /// gone; it is dropped before the lock is released, and its value is given back whatever becomes
    /// of the release. [`on_lost`](LockRequest::on_lost) can let it finish.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::acquire), which waits for a busy lock, and
    /// - [`is_lost`](LockError::is_lost) when the lock was lost before the body ended; with
    ///   [`is_completed`](LockError::is_completed) when that was found after its end.
    /// - [`is_max_hold_reached`](LockError::is_max_hold_reached) when `max_hold` was over first.
    ///
    /// # Panics
    /// When the body does; the release is handed to the background first.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, then releases in the background.
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        Run::new(self.acquire(), body).await
    }

    /// Acquires the lock in one try and runs the body as [`run`](LockRequest::run) does; `None`, without
    /// having polled the body, when another holder has the lock.
    ///
    /// # Errors
    /// As [`try_acquire`](LockRequest::try_acquire), and as [`run`](LockRequest::run) once the lock is
    /// acquired.
    ///
    /// # Panics
    /// As [`run`](LockRequest::run).
    ///
    /// # Cancel safety
    /// As [`run`](LockRequest::run).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let _other = locker.lock("job:nightly").acquire().await?;
    /// let rows = locker.lock("job:nightly").try_run(async { 41 + 1 }).await?;
    /// assert_eq!(rows, None);
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn try_run<F: Future>(self, body: F) -> Result<Option<F::Output>, LockError> {
        match Run::new(self.once().acquire(), body).await {
            Err(error) if error.is_busy() => Ok(None),
            outcome => outcome.map(Some),
        }
    }
}

impl fmt::Debug for LockRequest {
    /// With the key as messages show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map_or_else(LockError::key, |key| Some(key.as_str()));
        let shown = DisplayKey::new(key.unwrap_or_default(), self.reporting().redacts_keys);
        f.debug_struct("LockRequest").field("key", &shown.text()).finish_non_exhaustive()
    }
}

/// Asks as the terms say; gives the key back when another holder has the lock.
async fn ask(acquirer: &Acquirer, wanted: Wanted) -> Result<Result<LockGuard, LockKey>, LockError> {
    let start = acquirer.backend().now();
    let joins = acquirer.joins(&wanted);
    let wanted = if joins {
        wanted
    } else {
        match acquirer.try_acquire(wanted).await? {
            Ok(guard) => return Ok(Ok(guard)),
            Err(wanted) => wanted,
        }
    };
    if wanted.terms.wait == Wait::Never {
        return Ok(Err(wanted.key));
    }
    // Boxed, because a call that finds the lock free has no use for the room.
    Box::pin(wait(acquirer, &wanted, start, !joins)).await.map(Ok)
}

/// Waits as the terms say; a call that waits for long logs that once, while it does.
async fn wait(
    acquirer: &Acquirer,
    wanted: &Wanted,
    start: Moment,
    has_tried: bool,
) -> Result<LockGuard, LockError> {
    let mut call = pin!(acquirer.wait(wanted, start, has_tried));
    let elapsed = || acquirer.backend().now().since(start);
    let Some(patience) = acquirer.reporting().waited_over else { return call.await };
    let timer = || acquirer.backend().timer(patience.saturating_sub(elapsed()));
    if let Some(outcome) = within(timer, call.as_mut()).await {
        return outcome;
    }
    telemetry::waits_long(acquirer.reporting().show(&wanted.key), elapsed());
    call.await
}
