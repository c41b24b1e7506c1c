//! The right to hold a lock until a time.

use std::future::{Ready, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use crate::core::backend::{Attempt, BackendContext, Fault, Grant, Renewal, Renewed};
use crate::core::labels::label::Label;
use crate::core::process::clock::{Moment, within};
use crate::core::process::mutex::Mutex;
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::{Begin, OnLost, Once, Options, Ttl};
use crate::core::types::redact::DisplayKey;
use crate::core::types::token::FencingToken;

use self::state::{LeaseEnd, LeaseState};

pub use self::early::EndsEarly;
pub(crate) use self::loss::Loss;
pub(crate) use self::state::{Ended, Status};

mod display;
mod early;
mod errors;
mod loss;
pub(crate) mod renewal;
mod revoking;
pub(crate) mod schedule;
mod state;

/// The lease of a held lock: a handle that shows its state and can extend it, but does not hold the lock.
///
/// `guard = name` in [`distributed_lock`](crate::distributed_lock) binds one inside the body;
/// [`LockGuard::lease`](crate::LockGuard::lease) returns another. It is cheap to clone and may outlive the lock: then
/// it reports that the lock is no longer held.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("order:7").acquire().await?;
/// let lease = guard.lease().clone();
/// assert!(lease.is_held() && lease.remaining().as_secs() >= 9);
/// guard.release().await?;
/// assert!(!lease.is_held() && !lease.is_lost());
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone)]
pub struct Lease(Arc<Shared>);

struct Shared {
    attempt: Arc<Attempt>,
    fencing_token: FencingToken,
    ttl: Ttl,
    /// Before `begin` in any case.
    renews: AtomicBool,
    on_lost: OnLost,
    label: &'static Label,
    /// Until when the lock is done if a `once` body ends well; the moment of the grant if the guard decides that.
    done_until: Option<Moment>,
    /// Written by renewals, by the guard, and by the caller that finds the deadline passed.
    state: Mutex<LeaseState>,
    lost: Notify,
    context: Arc<BackendContext>,
}

impl Lease {
    /// The lease of a grant, counted from the request that the grant answers; `None` if it is over by now. Nothing else
    /// makes one.
    pub(crate) fn of(
        grant: &Grant,
        attempt: Arc<Attempt>,
        options: &Options,
        context: Arc<BackendContext>,
    ) -> Option<Self> {
        if !grant.holds(options.ttl, context.backend.now()) {
            return None;
        }
        let is_part = options.begin == Begin::WithTheLast;
        let max_hold = options.max_hold.filter(|_| !is_part);
        let hold_until = max_hold.map(|most| grant.since().after(most));
        if let Some(least) = options.min_hold.filter(|_| !is_part) {
            // The backend granted the lock before its answer came, so this is not too short.
            attempt.min_hold.set_end(context.backend.now().after(least));
        }
        let done_until = options.once.map(|once| match once {
            Once::For(period) => context.backend.now().after(period),
            Once::ByHand => context.backend.now(),
        });
        let state = Mutex::new(LeaseState::new(grant.since(), options.ttl, hold_until));
        let lost = Notify::new();
        attempt.set_label(options.label);
        let Options { ttl, renew, on_lost, label, .. } = *options;
        let renews = AtomicBool::new(renew || is_part);
        Some(Self(Arc::new(Shared {
            attempt,
            fencing_token: grant.fencing_token(),
            ttl,
            renews,
            on_lost,
            label,
            done_until,
            state,
            lost,
            context,
        })))
    }

    /// The limits of the hold count from now: until here it was renewed, without a longest or a shortest hold.
    ///
    /// See "How does a call acquire several keys without a deadlock?" in DESIGN.md.
    pub(crate) fn begin(&self, options: &Options) {
        let now = self.context().backend.now();
        if let Some(least) = options.min_hold {
            self.0.attempt.min_hold.set_end(now.after(least));
        }
        let hold_until = options.max_hold.map(|most| now.after(most));
        self.update(|state, _| state.hold_until(hold_until));
        self.0.renews.store(options.renew, Ordering::Release);
    }

    /// Renews the lease if a third of it has passed; fails if it is over.
    pub(crate) async fn refresh(&self) -> Result<(), LockError> {
        let third = self.0.ttl.duration() / 3;
        if !self.update(|state, now| state.is_older(third, now)) {
            return self.still_held();
        }
        self.extend(self.0.ttl.duration()).await
    }

    /// Never compiles; here for its message.
    #[doc(hidden)]
    pub fn release<'a>(&'a self) -> Ready<Result<(), LockError>>
    where
        &'a Self: EndsEarly,
    {
        unreachable!("no lease ends early")
    }

    /// Returns the whole name of the lock, prefix included.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.0.attempt.key
    }

    /// Returns the number that grows with every grant of this key: pass it to the resource that the lock protects.
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.0.fencing_token
    }

    /// Returns how long the holder may still rely on the lock; zero when it may not.
    ///
    /// It counts from when the last request was sent that acquired or renewed the lock, and is one per cent and two
    /// milliseconds less than the lease in the backend. `max_hold` limits it.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.status() {
            Status::Held(rest) => rest,
            Status::MaxHoldReached | Status::Revoked | Status::Lost(_) | Status::Released => {
                Duration::ZERO
            }
        }
    }

    /// Returns whether the holder may still rely on the lock.
    ///
    /// # What this does not guarantee
    /// The result ages: a paused process may act on it too late. Only a resource that checks the [fencing
    /// token](Lease::fencing_token) is safe from that.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns whether the lock was lost: its deadline passed, or a renewal found it gone.
    ///
    /// A loss is final. A forked process has lost the locks of its parent, which holds them undisturbed.
    ///
    /// A released lock is not lost. Neither is a lock whose `max_hold` is over, or whose holder an operator asked to
    /// stop, until its lease ends without a release.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self.status(), Status::Lost(_))
    }

    /// Waits until the holder may no longer rely on the lock; returns the error that states the reason.
    ///
    /// That is when the deadline passes, a renewal finds that the lock was deleted or taken over, `max_hold` is over,
    /// or an operator asks the holder to stop. Without `renew`, a lock that disappears from the backend is noticed only
    /// at its deadline, or when a connection is opened again. The wait never ends once the lock was released.
    ///
    /// # Cancel safety
    /// Nothing is missed: if the lock is lost already, the next call returns at once.
    ///
    /// # Examples
    /// Leave a loop when the lock is lost:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # use std::time::Duration;
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # async fn next_step() { tokio::time::sleep(Duration::from_millis(1)).await }
    /// let guard = locker.lock("job").expire(Duration::from_millis(20)).acquire().await?;
    /// let error = loop {
    ///     tokio::select! {
    ///         error = guard.lease().lost() => break error,
    ///         () = next_step() => {}
    ///     }
    /// };
    /// assert!(error.is_lost());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn lost(&self) -> LockError {
        let error = match self.ending(Duration::ZERO, Duration::ZERO).await {
            LeaseEnd::Over(status) => self.over(status),
            LeaseEnd::Near(_) | LeaseEnd::Far(_) => None,
        };
        match error {
            Some(error) => error,
            None => pending().await,
        }
    }

    async fn ending(&self, of_deadline: Duration, of_hold: Duration) -> LeaseEnd {
        loop {
            // Registered before the look, so that a loss right after it is not missed.
            let mut notified = pin!(self.0.lost.notified());
            notified.as_mut().enable();
            if self.context().is_inherited() {
                return LeaseEnd::Over(Status::Lost(Loss::Forked));
            }
            match self.update(|state, now| state.ending(of_deadline, of_hold, now)) {
                LeaseEnd::Far(wait) => {
                    // An end that renewals have moved is waited for again.
                    let timer = || self.context().backend.timer(wait);
                    let _notified: Option<()> = within(timer, notified).await;
                }
                ending => return ending,
            }
        }
    }

    /// Waits until the end is at most `duration` away, so that a long body can stop in order; returns how much is left.
    ///
    /// The end is that of the lease or, if that is nearer, of `max_hold`. With `renew` the end of the lease matters
    /// only when less than a third of `expire` is left, which shows that renewals fail.
    ///
    /// | if | the call |
    /// |---|---|
    /// | the end is that near already | returns at once |
    /// | the holder may no longer rely on the lock | returns zero, as soon as [`lost`](Lease::lost) returns |
    /// | a renewal or an [`extend`](Lease::extend) moves the end | waits for the new end; so does another call after one that has returned |
    /// | the lock was released | never returns |
    ///
    /// # What this does not guarantee
    /// A lock that is deleted, taken over or revoked ends at once, without time left.
    ///
    /// # Cancel safety
    /// Nothing is missed: if the end is near already, the next call returns at once.
    ///
    /// # Examples
    /// An export that stops in time and records how far it got:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # use std::time::Duration;
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # async fn next_page() { tokio::time::sleep(Duration::from_millis(1)).await }
    /// # async fn note(pages: usize) { assert!(pages > 0) }
    /// let request = locker.lock("export").expire(Duration::from_millis(100));
    /// let guard = request.acquire().await?;
    /// let mut pages = 0;
    /// loop {
    ///     tokio::select! {
    ///         _left = guard.lease().ending_within(Duration::from_millis(50)) => break,
    ///         () = next_page() => pages += 1,
    ///     }
    /// }
    /// note(pages).await;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn ending_within(&self, duration: Duration) -> Duration {
        let of_lease = if self.renews() { self.0.ttl.duration() / 3 } else { Duration::MAX };
        match self.ending(duration.min(of_lease), duration).await {
            LeaseEnd::Near(left) => left,
            LeaseEnd::Over(Status::Released) => pending().await,
            LeaseEnd::Over(_) | LeaseEnd::Far(_) => Duration::ZERO,
        }
    }

    /// Makes the lease last for `duration` from now, unless it lasts longer anyway or `max_hold` ends it.
    ///
    /// Renewals continue as before, and never shorten it.
    ///
    /// # Errors
    /// - [`is_lost`](LockError::is_lost) when the lock is not held any more: its deadline had passed, or the backend
    ///   replied that it has no holder or another one. The lock is never acquired again.
    /// - [`is_max_hold_reached`](LockError::is_max_hold_reached) when `max_hold` is over.
    /// - [`is_revoked`](LockError::is_revoked) when an operator asked the holder to stop.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend did not reply in time: the holder may rely on
    ///   the lease as long as before.
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) for a duration under 10 ms.
    ///
    /// # Cancel safety
    /// A dropped call may have extended the lease in the backend; the holder does not rely on that.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # use std::time::Duration;
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let guard = locker.lock("order:7").expire(Duration::from_secs(10)).acquire().await?;
    /// guard.lease().extend(Duration::from_secs(60)).await?;
    /// assert!(guard.lease().remaining() > Duration::from_secs(58));
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn extend(&self, duration: Duration) -> Result<(), LockError> {
        let ttl =
            Ttl::new("extend", duration).map_err(|error| self.about(|key| error.with_key(key)))?;
        self.still_held()?;
        let sent = self.context().backend.now();
        let outcome = self.request(Renewal::new(&self.0.attempt, Some(ttl), sent)).await;
        self.answered(sent, Some(ttl), outcome.map_err(|fault| self.fault(fault))?);
        // The answer may have come after the deadline.
        self.still_held()
    }

    async fn request(&self, request: Renewal) -> Result<Renewed, Fault> {
        let context = self.context();
        let outcomes =
            context.request(self.0.attempt.slot, context.backend.renew(vec![request])).await?;
        // One outcome for each request.
        outcomes.into_iter().next().unwrap_or(Ok(Renewed::Absent))
    }

    pub(crate) fn still_held(&self) -> Result<(), LockError> {
        match self.status() {
            Status::Released => {
                Err(self.about(|key| LockError::lost(key, "the lock was released")))
            }
            status => self.over(status).map_or(Ok(()), Err),
        }
    }

    pub(crate) fn status(&self) -> Status {
        if self.context().is_inherited() {
            return Status::Lost(Loss::Forked);
        }
        self.status_here()
    }

    pub(crate) fn status_here(&self) -> Status {
        self.update(LeaseState::status)
    }

    fn answered(&self, sent: Moment, ttl: Option<Ttl>, outcome: Renewed) {
        match outcome {
            Renewed::Held => self.update(|state, now| {
                state.confirmed(sent);
                if let Some(ttl) = ttl {
                    state.renewed(sent, ttl, now);
                }
            }),
            Renewed::Absent => self.refused(Loss::Absent),
            Renewed::Taken => self.refused(Loss::Taken),
        }
    }

    pub(crate) fn refused(&self, loss: Loss) {
        self.update(|state, now| state.refused(loss, now));
    }

    /// A request that gives the lock to a ticket is under way: meanwhile a refused renewal is no loss.
    pub(crate) fn passes(&self, is_passing: bool) {
        self.update(|state, _| state.is_passing = is_passing);
    }

    /// Whether the lock is held as far as is known here, and its release has not begun. It notes no passed deadline, so
    /// it may be called under a mutex.
    pub(crate) fn is_holding(&self, now: Moment) -> bool {
        self.state().is_holding(now)
    }

    pub(crate) fn is_confirmed(&self, now: Moment, recently: Duration) -> bool {
        self.state().is_confirmed(now, recently)
    }

    pub(crate) fn end(&self) -> Ended {
        self.update(|state, now| {
            state.release(now);
            let is_revoked = state.is_revoked();
            Ended { status: state.status(now), at: now, used: state.used(now), is_revoked }
        })
    }

    /// The body ended well: a release from now on leaves the lock done, for `longer` than its call requested. If the
    /// lease is over, the body runs again.
    ///
    /// See "How does `once` tell a completed run from a busy lock?" in DESIGN.md.
    pub(crate) fn ended_well(&self, longer: Duration) {
        if let Some(until) = self.0.done_until
            && self.is_held()
        {
            self.attempt().min_hold.set_end(until.after(longer));
        }
    }

    pub(crate) fn shown_key(&self) -> DisplayKey<'_> {
        self.0.context.reporting.show(self.key()).labeled(self.0.label)
    }

    fn unrenewed(&self) -> Option<Arc<LockError>> {
        self.state().unrenewed.clone()
    }

    fn state(&self) -> MutexGuard<'_, LeaseState> {
        // Every change is one assignment, so a panic elsewhere leaves it sound.
        self.0.state.lock()
    }

    fn update<R>(&self, change: impl FnOnce(&mut LeaseState, Moment) -> R) -> R {
        // The clock is read under the lock, so that time never goes back from change to change.
        let mut state = self.state();
        let known = state.loss();
        let result = change(&mut state, self.context().backend.now());
        let found = state.loss();
        drop(state);
        if let (None, Some(loss)) = (known, found) {
            let why = self.why(loss);
            telemetry::lost(self.shown_key(), self.fencing_token(), loss.reason(), &why);
            self.0.lost.notify_waiters();
        }
        result
    }

    pub(crate) fn ttl(&self) -> Ttl {
        self.0.ttl
    }

    pub(crate) fn first_due(&self) -> Moment {
        schedule::due(self.state().counted_from, self.0.ttl)
    }

    pub(crate) fn renews(&self) -> bool {
        self.0.renews.load(Ordering::Acquire)
    }

    pub(crate) fn on_lost(&self) -> OnLost {
        self.0.on_lost
    }

    pub(crate) fn context(&self) -> &Arc<BackendContext> {
        &self.0.context
    }

    pub(crate) fn attempt(&self) -> &Arc<Attempt> {
        &self.0.attempt
    }
}

/// For tests that look for it in the server.
#[cfg(lockable_internals)]
#[must_use]
pub fn owner_of(lease: &Lease) -> &str {
    lease.0.attempt.owner.as_ref()
}

#[cfg(test)]
impl Lease {
    pub(crate) fn granted(
        attempt: Arc<Attempt>,
        options: &Options,
        context: Arc<BackendContext>,
    ) -> Self {
        let fence = crate::core::backend::Reserved::single(1);
        let grant = Grant::answered(&attempt, fence, context.backend.now());
        Self::of(&grant, attempt, options, context).unwrap()
    }
}
