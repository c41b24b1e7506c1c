//! The request for a lock, or for several.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::core::acquire::{Acquirer, acquire};
use crate::core::backend::BackendContext;
use crate::core::hold::grant::Grant;
use crate::core::hold::guard::LockGuard;
use crate::core::hold::reentry::holds;
use crate::core::hold::run::Run;
use crate::core::labels::label::Label;
use crate::core::request_id::RequestId;
use crate::core::telemetry;
use crate::core::types::error::LockError;
use crate::core::types::key::{Keys, LockKey};
use crate::core::types::options::{OnLost, Once, Options, Ttl, Wait};
use crate::core::types::permit::{Permits, PermitsKey};
use crate::core::types::redact::DisplayKey;

/// A request for one lock, made by [`Locker::lock`](crate::Locker::lock), or for several, made by
/// [`Locker::lock_all`](crate::Locker::lock_all).
///
/// `LockRequest` alone acquires a [`LockGuard`], and `LockRequest<Vec<LockKey>>` a [`LockSet`](crate::LockSet). An
/// option holds for every lock, and a wait limit for all of them together.
///
/// # Examples
/// A job that may take long, but not for ever, and that runs once even if several triggers fire close together:
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
pub struct LockRequest<K = LockKey> {
    acquirer: Arc<Acquirer>,
    /// The locks' whole names, or the first mistake in the request.
    key: Result<K, LockError>,
    /// The length of the prefix.
    prefix: usize,
    options: Options,
}

impl<K: Keys> LockRequest<K> {
    pub(crate) fn new(
        acquirer: Arc<Acquirer>,
        key: Result<K, LockError>,
        prefix: usize,
        mut options: Options,
    ) -> Self {
        // The one that is current here: a sync function's lock is acquired on another thread.
        options.identity = RequestId::current();
        Self { acquirer, key, prefix, options }
    }

    pub(crate) fn context(&self) -> &Arc<BackendContext> {
        &self.acquirer.context
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The name of the lock, or of the first, as it may be shown, even if it is no key.
    pub(super) fn shown_key(&self) -> DisplayKey<'_> {
        let name = match &self.key {
            Ok(key) => key.all().first().map(LockKey::as_str),
            Err(mistake) => mistake.key(),
        };
        let redacts_keys = self.context().reporting.redacts_keys;
        DisplayKey::new(name.unwrap_or_default(), redacts_keys).labeled(self.options.label)
    }

    /// Labels and redacts an error.
    pub(super) fn explain(&self) -> impl Fn(LockError) -> LockError + use<K> {
        let reporting = self.context().reporting;
        let label = self.options.label;
        move |error| reporting.redact(error).labeled(label)
    }

    /// Sets the length of the lease, in whole milliseconds; the locker's `expire` by default, at least 10 ms.
    pub fn expire(self, expire: Duration) -> Self {
        self.with(|options| Ttl::new("expire", expire).map(|ttl| options.ttl = ttl))
    }

    /// Keeps the lease alive for as long as the lock is held; off by default.
    ///
    /// The background renews it a third of `expire` after the grant and after each renewal, and [retries a renewal
    /// without a reply](crate::guide::leases#what-the-numbers-mean). When the process dies, the lock is free after
    /// `expire`.
    ///
    /// # What this does not guarantee
    /// - A body that hangs, and a guard that is leaked by [`mem::forget`](std::mem::forget), hold the lock for ever;
    ///   set a [`max_hold`](LockRequest::max_hold).
    /// - With `memory://` a lease is renewed on the runtime that acquired it, and ends when that is blocked or has
    ///   ended.
    pub fn renew(self) -> Self {
        self.set(|options| options.renew = true)
    }

    /// Limits how long a renewed lock is held, from its grant; no limit by default.
    ///
    /// At the limit, the body of [`run`](LockRequest::run) is dropped and the lock released. A guard that is held by
    /// hand is not renewed any more, and its [`lost`](crate::Lease::lost) signal fires;
    /// [`Lease::ending_within`](crate::Lease::ending_within) returns earlier. Needs [`renew`](LockRequest::renew).
    pub fn max_hold(self, most: Duration) -> Self {
        self.set(|options| options.max_hold = Some(most))
    }

    /// Sets the shortest time that the lock is taken, from its grant; at most `expire`.
    ///
    /// An earlier release returns at once, whatever the outcome of the work, and leaves the lock taken for the rest. So
    /// a scheduled job runs once although the clocks that trigger it differ. If calls wait, the lock then stays
    /// reserved for the queue for at most one second.
    pub fn min_hold(self, least: Duration) -> Self {
        self.set(|options| options.min_hold = Some(least))
    }

    /// Limits the wait for a lock that another holder has; no limit by default.
    ///
    /// The limit starts with the call, and never cuts the first try short. A limit of zero is one try; it is busy at
    /// once if the locker holds the lock, or other calls of it wait for it or are trying. At the limit the error is
    /// [`is_wait_limit_reached`](LockError::is_wait_limit_reached), or [`is_unavailable`](LockError::is_unavailable) if
    /// the last known outcome is a failure; a call that waited behind others without a reply about the lock tries once
    /// first. See [giving up](crate::guide::waiting#giving-up).
    ///
    /// [`try_acquire`](LockRequest::try_acquire) and [`try_run`](LockRequest::try_run) refuse this option.
    pub fn wait(self, limit: Duration) -> Self {
        self.set(|options| options.wait = Wait::AtMost(limit))
    }

    /// Passes the lock to another process after this holder, if one waits: slower, but fair from holder to holder.
    ///
    /// [`try_acquire`](LockRequest::try_acquire) and [`try_run`](LockRequest::try_run) refuse this option.
    pub fn fair(self) -> Self {
        self.set(|options| options.fair = true)
    }

    /// Sets what happens to the body of [`run`](LockRequest::run) when the lock is lost; it is stopped by default.
    pub fn on_lost(self, on_lost: OnLost) -> Self {
        self.set(|options| options.on_lost = on_lost)
    }

    /// Sets the label of this lock for [telemetry](crate::telemetry#which-lock); the attribute sets its key template.
    ///
    /// Choose a constant, such as `"order:{id}"` for the locks of all orders, and never the key: each new text would be
    /// a new time series, and is stored for as long as the program runs.
    pub fn label(self, lock: &'static str) -> Self {
        self.set(|options| options.label = Label::by_hand(lock))
    }

    /// Checks the request without sending anything, for a value that an operator sets.
    ///
    /// What it refuses is refused at every call, also for an option of the attribute, which takes the same values.
    ///
    /// # Errors
    /// [`InvalidKey`](crate::LockErrorKind::InvalidKey) and [`InvalidOption`](crate::LockErrorKind::InvalidOption), as
    /// acquiring it would return them.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// # fn limit() -> u32 { 1 }
    /// # fn expire() -> std::time::Duration { std::time::Duration::from_secs(60) }
    /// locker.lock("export").permits(limit()).expire(expire()).check()?;
    /// assert!(locker.lock("export").permits(0).check().is_err());
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn check(self) -> Result<(), LockError> {
        let (agrees, explain) = (self.agrees(), self.explain());
        agrees.and(self.key.map(drop)).map_err(explain)
    }

    pub(super) fn trying(self) -> Self {
        self.with(Options::try_once)
    }

    pub(super) fn redeeming(self) -> Self {
        self.with(Options::redeem)
    }

    fn set(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Changes the options; the first mistake is kept.
    fn with(mut self, change: impl FnOnce(&mut Options) -> Result<(), LockError>) -> Self {
        self.key = self.key.and_then(|key| match change(&mut self.options) {
            Ok(()) => Ok(key),
            Err(mistake) => Err(about(mistake, &key)),
        });
        self
    }

    /// For a caller whose thread waits for the outcome, and then only runs its body.
    ///
    /// # Errors
    /// When that caller holds the lock itself, which no other thread can see, or was forked from the process that made
    /// the locker.
    pub(crate) fn blocking(mut self) -> Result<Self, LockError> {
        self.refuse()?;
        self.options.caller_blocks = true;
        Ok(self)
    }

    /// The name of the lock, or of the first, where the call may wait for it.
    pub(crate) fn waits_for(&self) -> Option<&LockKey> {
        let key = self.key.as_ref().ok()?.all().first();
        key.filter(|_| self.options.wait != Wait::Never)
    }

    /// Refuses what was made before a fork, and what the calling body holds already.
    fn refuse(&self) -> Result<(), LockError> {
        let context = self.context();
        context.usable_here()?;
        let Ok(keys) = &self.key else { return Ok(()) };
        match keys.all().iter().find(|key| self.is_held_here(key)) {
            Some(key) => Err(self.explain()(LockError::held_by_caller(key.as_str()))),
            None => Ok(()),
        }
    }

    /// Whether the calling body holds it, or any permit of the same key.
    fn is_held_here(&self, key: &LockKey) -> bool {
        let is_it = |held: &LockKey| held == key || self.options.permits.are_of(key, held);
        holds(self.context().backend.store(), is_it)
    }

    /// Returns what acquiring needs.
    ///
    /// # Errors
    /// The first mistake in the request, as it may be shown; it is counted.
    pub(super) fn checked(mut self) -> Result<(Arc<Acquirer>, K, Options), LockError> {
        let agrees = self.refuse().and_then(|()| self.agrees());
        self.options.identity = RequestId::current().or(self.options.identity.take());
        let explain = self.explain();
        let Self { acquirer, key, options, .. } = self;
        match agrees.and(key) {
            Ok(key) => Ok((acquirer, key, options)),
            Err(mistake) => {
                let mistake = explain(mistake);
                telemetry::acquisition_failed(options.label, &mistake);
                Err(mistake)
            }
        }
    }

    fn agrees(&self) -> Result<(), LockError> {
        let Ok(keys) = &self.key else { return Ok(()) };
        self.options.check().map_err(|mistake| about(mistake, keys))
    }
}

fn about<K: Keys>(error: LockError, keys: &K) -> LockError {
    match keys.all().first() {
        Some(key) => error.with_key(key.as_str()),
        None => error,
    }
}

impl LockRequest {
    /// Requests the lock for a run that is not repeated once it ended well: [`LockGuard::keep`] then leaves it done.
    ///
    /// While it is done, a call with this option fails with [`is_done`](LockError::is_done); one that waits, within a
    /// second of the end of the run. Other calls find the lock busy, so a key is either for `once` calls or for others.
    /// [`run`](LockRequest::run) leaves nothing done, because it does not know what a good end is; the attribute's
    /// option `once` does.
    pub fn once(self) -> Self {
        self.set(|options| options.once = Some(Once::ByHand))
    }

    /// Acquires one of `count` [permits](crate::guide::permits) of the key, from 1 to 64: its holders at a time, in all
    /// processes.
    ///
    /// A permit is a lock of its own, with its own lease: `export` has the permits `{export}#1`, `{export}#2` and so
    /// on, behind the prefix. The braces are a [hash tag](LockKey), so that all are on one server; a key that is one
    /// hash tag itself is refused. Permits and the plain lock of the same key do not exclude each other.
    ///
    /// Calls that wait in Redis are served in order, across all processes. The calls of one process beyond `count` wait
    /// in it, in their order, and come behind what waits in Redis by then. All callers must agree on the number; the
    /// larger one counts.
    ///
    /// [Fencing tokens](crate::FencingToken) rise from grant to grant of a key, but fence nothing among holders at the
    /// same time.
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let first = locker.lock("export").permits(2).acquire().await?;
    /// let second = locker.lock("export").permits(2).acquire().await?;
    /// assert!(locker.lock("export").permits(2).try_acquire().await.is_err_and(|error| error.is_busy()));
    /// # drop((first, second));
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub fn permits(mut self, count: u32) -> Self {
        self.options.permits = Permits::OneOf(count);
        self.key =
            self.key.and_then(|key| PermitsKey::of(&key, self.prefix)).map(PermitsKey::into_key);
        self
    }

    /// Acquires all [permits](crate::guide::permits) of the key, `count` of them: waits until the other calls are out,
    /// and lets none in.
    ///
    /// Calls for all permits queue at a gate, so that no two of them have a half each. The one that has passed it waits
    /// behind those that came before, and holds what becomes free. Once it has all, the gate is free for the next. The
    /// [`LockSet`](crate::LockSet) has a lease for each permit. The newest of its fencing tokens is newer than those of
    /// all holders before.
    ///
    /// If a call that counts more permits holds one above this number, the error is
    /// [`InvalidOption`](crate::LockErrorKind::InvalidOption).
    ///
    /// # What this does not guarantee
    /// A call for one permit that waits in this process behind a call for all waits for that: a body with a permit must
    /// not wait for all.
    pub fn all_permits(self, count: u32) -> LockRequest<Vec<LockKey>> {
        let Self { acquirer, key, prefix, mut options } = self;
        options.permits = Permits::All(count);
        let key = key.and_then(|key| PermitsKey::of(&key, prefix)?.all(count));
        LockRequest { acquirer, key, prefix, options }
    }

    /// Acquires the lock; while another holder has it, the call waits in a FIFO queue.
    ///
    /// A free lock costs one try. If another call of the same locker holds the lock, waits for it or is trying to
    /// acquire it, this call joins the line behind that one and sends no request. Waiters of one process are served in
    /// the order of arrival, and processes take [turns](crate::guide::waiting#the-order). The wait has no limit unless
    /// [`wait`](LockRequest::wait) sets one.
    ///
    /// # Errors
    /// - [`is_wait_limit_reached`](LockError::is_wait_limit_reached) when another holder still has the lock at the
    ///   limit.
    /// - [`is_done`](LockError::is_done) for a request with [`once`](LockRequest::once), when another such call has
    ///   ended well.
    /// - [`is_held_by_caller`](LockError::is_held_by_caller) when the calling body holds the lock itself.
    /// - [`is_unavailable`](LockError::is_unavailable), in these cases:
    ///   - the backend refuses the first try, or the first request of the line, or does not reply to it within its
    ///     deadline;
    ///   - the backend does not reply for 30 seconds while the call waits;
    ///   - five grants had expired before they arrived, because `expire` is shorter than a round trip.
    /// - [`WrongType`](crate::LockErrorKind::WrongType) when the key holds data that is no lock.
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey) and [`InvalidOption`](crate::LockErrorKind::InvalidOption),
    ///   before anything is sent.
    /// - [`NotConfigured`](crate::LockErrorKind::NotConfigured) [after a fork](crate::Locker#after-a-fork).
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue, and keeps no lock: as after an error, if a request that is still on its
    /// way is granted, the background releases the lock. If the connection breaks as well, the lock can stay taken for
    /// `expire`.
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        let explain = self.explain();
        let (acquirer, key, options) = self.checked()?;
        let start = acquirer.context.backend.now();
        let tried = acquire(&acquirer, key, &options, start).await?;
        tried.granted().map_err(|busy| explain(busy.error()))
    }

    /// Acquires the lock in one try; the error [`is_busy`](LockError::is_busy) when another holder has it.
    ///
    /// So `Ok` always means that the lock is held, until its guard is dropped: give that a name. The call sends no
    /// request if this locker holds the lock, its release has not begun, and the backend confirmed the lease less than
    /// 0.8 seconds ago: a lock that is deleted by hand is free for its own process that much later.
    ///
    /// # Errors
    /// - As [`acquire`](LockRequest::acquire), but for the wait limit. Return any error that is not busy, or a server
    ///   that is down looks like a busy lock.
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption) with [`wait`](LockRequest::wait) or
    ///   [`fair`](LockRequest::fair).
    ///
    /// # Cancel safety
    /// As [`acquire`](LockRequest::acquire).
    ///
    /// # Examples
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// match locker.lock("job:nightly").try_acquire().await {
    ///     Ok(guard) => {
    ///         // … the nightly job …
    ///         guard.release().await?;
    ///     }
    ///     Err(error) if error.is_busy() => {}
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    pub async fn try_acquire(self) -> Result<LockGuard, LockError> {
        self.trying().acquire().await
    }

    pub(super) fn leading(self) -> Self {
        self.with(Options::lead)
    }

    /// Returns a function that makes this request again at each call.
    ///
    /// # Errors
    /// The first mistake in the request, which is reported.
    pub(super) fn repeated(self) -> Result<impl Fn() -> Self, LockError> {
        let explain = self.explain();
        let Self { acquirer, key, prefix, options } = self;
        let report = |error: &LockError| telemetry::acquisition_failed(options.label, error);
        let key = key.map_err(explain).inspect_err(report)?;
        Ok(move || {
            let (acquirer, options) = (Arc::clone(&acquirer), options.clone());
            Self { acquirer, key: Ok(key.clone()), prefix, options }
        })
    }

    /// Acquires the lock as [`acquire`](LockRequest::acquire) does, runs the body while the lease is held, and
    /// releases.
    ///
    /// The body is not polled after the lease's deadline, nor after a renewal that found the lock gone; with
    /// [`on_lost`](LockRequest::on_lost) it can finish. It is dropped before the lock is released, and its value is
    /// returned whatever the outcome of the release.
    ///
    /// # Errors
    /// - As [`acquire`](LockRequest::acquire).
    /// - [`is_lost`](LockError::is_lost) when the lock was lost before the body ended;
    ///   [`is_body_finished`](LockError::is_body_finished) holds too if the loss was found after its end.
    /// - [`is_max_hold_reached`](LockError::is_max_hold_reached) when `max_hold` was over first.
    /// - [`is_revoked`](LockError::is_revoked) when an operator asked the holder to stop first.
    ///
    /// # Panics
    /// When the body does; the release is deferred to the background first.
    ///
    /// # Cancel safety
    /// Dropping the future drops the body, then releases in the background.
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        Run::new(self.acquire(), body).await
    }

    /// Acquires the lock in one try and runs the body as [`run`](LockRequest::run) does; a busy lock is the error
    /// [`is_busy`](LockError::is_busy).
    ///
    /// # Errors
    /// As [`try_acquire`](LockRequest::try_acquire) and [`run`](LockRequest::run).
    ///
    /// # Panics
    /// As [`run`](LockRequest::run).
    ///
    /// # Cancel safety
    /// As [`run`](LockRequest::run).
    pub async fn try_run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        self.trying().run(body).await
    }
}

/// The keys of a request.
#[doc(hidden)]
pub trait Acquire: Keys + Sized + Send + 'static {
    /// What acquiring returns.
    type Granted: Grant;

    /// As the method of the request.
    fn acquire(
        request: LockRequest<Self>,
    ) -> impl Future<Output = Result<Self::Granted, LockError>> + Send + 'static;
}

impl Acquire for LockKey {
    type Granted = LockGuard;

    async fn acquire(request: LockRequest<Self>) -> Result<LockGuard, LockError> {
        request.acquire().await
    }
}

impl<K: Keys> fmt::Debug for LockRequest<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reporting = &self.context().reporting;
        let mut request = f.debug_struct("LockRequest");
        match self.key.as_ref().map(Keys::all) {
            Ok(keys) if keys.len() != 1 => {
                let keys: Vec<_> = keys.iter().map(|key| reporting.show(key).text()).collect();
                request.field("keys", &keys)
            }
            Ok(_) | Err(_) => request.field("key", &self.shown_key().text()),
        };
        request.finish_non_exhaustive()
    }
}
