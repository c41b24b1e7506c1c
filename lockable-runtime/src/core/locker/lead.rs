//! A leader: one process at work of all that campaign.
//!
//! See "How does `lead` keep one leader at work?" in DESIGN.md.

use std::fmt;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::watch;

use crate::core::hold::run::{LeaseCell, Run};
use crate::core::lease::Lease;
use crate::core::locker::request::LockRequest;
use crate::core::process::together::first_of;
use crate::core::telemetry::Campaigns;
use crate::core::types::error::{LockError, LockErrorKind};

impl LockRequest {
    /// Campaigns for the lock, and runs the body while this process leads; again and again, until the body returns.
    ///
    /// The body gets the [`Lease`] of its term, which is renewed, and is stopped when that ends. Then the process
    /// campaigns again, a second later and behind all others:
    ///
    /// - after a lost lease, and as long as the backend is down;
    /// - when an operator asks the holder to stop, so that `lockable release scheduler` makes a leader step down;
    /// - after [`max_hold`](LockRequest::max_hold), which is the longest term.
    ///
    /// A body that returns resigns: the lock is released, and the value returned, also where that is an error. After
    /// that, after a panic of the body and after the errors below, this process never leads again, unless `lead` is
    /// called again. Each end is an [event](crate::telemetry), at error level if the body did not resign. Look at the
    /// outcome of the task too.
    ///
    /// # Guarantees
    /// No body runs without a lease. [`Leadership::is_leader`] is false before the lock is released.
    ///
    /// # What this does not guarantee
    /// A leader that is paused past its deadline may take a last effect late. Only a resource that checks the [fencing
    /// token](Lease::fencing_token) is safe from that.
    ///
    /// # Errors
    /// When the future is awaited:
    ///
    /// - [`InvalidKey`](LockErrorKind::InvalidKey), [`NotConfigured`](LockErrorKind::NotConfigured) and
    ///   [`is_held_by_caller`](LockError::is_held_by_caller);
    /// - [`InvalidOption`](LockErrorKind::InvalidOption), also for [`wait`](LockRequest::wait) and
    ///   [`once`](LockRequest::once), which have no meaning here, and for [`permits`](LockRequest::permits) and
    ///   [`OnLost::Finish`](crate::OnLost::Finish), which let several be at work;
    /// - [`is_body_finished`](LockError::is_body_finished) when the body returned, but its lease was lost before.
    ///
    /// Any other campaign that fails is repeated each second, also the first one and also if the server refuses it: a
    /// password, a right, or other data at the key can be mended. The first of them in a row is a warning.
    ///
    /// # Panics
    /// When the body does; the release is deferred to the background first.
    ///
    /// # Cancel safety
    /// Dropping the future resigns: the body is dropped, then the lock is released in the background. At the end of the
    /// program wait for that with [`shutdown`](crate::shutdown).
    ///
    /// # Examples
    /// A leader that resigns, and a handle that shows whether this process leads:
    /// ```
    /// # async fn example() -> Result<(), lockable_runtime::LockError> {
    /// # let locker = lockable_runtime::Locker::connect("memory://").await?;
    /// let leading = locker.lock("scheduler").lead(|lease| async move {
    ///     println!("leads with the fencing token {}", lease.fencing_token());
    ///     // … schedules, until this returns or its lease ends …
    ///     "resigned"
    /// });
    /// let probe = leading.watch();
    /// assert!(!probe.is_leader());
    /// assert_eq!(leading.await?, "resigned");
    /// # Ok(())
    /// # }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
    /// ```
    ///
    /// A process that campaigns again after each end. A `JoinSet` aborts its tasks when it is dropped, so the campaigns
    /// end with this function, and the parts of the work with the body:
    /// ```
    /// # use std::time::Duration;
    /// # use lockable_runtime::Locker;
    /// # async fn clean_up() {}
    /// # async fn send_mails() {}
    /// use tokio::task::JoinSet;
    ///
    /// async fn schedule(locker: Locker) {
    ///     loop {
    ///         let mut campaigns = JoinSet::new();
    ///         campaigns.spawn(locker.lock("scheduler").lead(|_| async {
    ///             let mut parts = JoinSet::new();
    ///             parts.spawn(clean_up());
    ///             parts.spawn(send_mails());
    ///             // The first part that ends, or panics, ends the term.
    ///             parts.join_next().await
    ///         }));
    ///         let ended = campaigns.join_next().await;
    ///         eprintln!("the campaigns have ended: {ended:?}");
    ///         tokio::time::sleep(Duration::from_secs(5)).await;
    ///     }
    /// }
    /// ```
    pub fn lead<B, F>(self, body: B) -> Leading<F::Output>
    where
        B: FnMut(Lease) -> F + Send + 'static,
        F: Future<Output: Send> + Send + 'static,
    {
        let (office, watched) = watch::channel(None);
        Leading { campaigns: Box::pin(campaigns(self.leading(), body, office)), watched }
    }
}

/// Campaigns until the body returns or no campaign can succeed, and reports the end.
async fn campaigns<B, F>(
    request: LockRequest,
    body: B,
    office: watch::Sender<Option<Lease>>,
) -> Result<F::Output, LockError>
where
    B: FnMut(Lease) -> F,
    F: Future,
{
    let campaigns = Campaigns::start(request.shown_key());
    let outcome = options(request, body, office, &campaigns).await;
    campaigns.end(&outcome);
    outcome
}

async fn options<B, F>(
    request: LockRequest,
    mut body: B,
    office: watch::Sender<Option<Lease>>,
    campaigns: &Campaigns,
) -> Result<F::Output, LockError>
where
    B: FnMut(Lease) -> F,
    F: Future,
{
    let backend = Arc::clone(&request.context().backend);
    let campaign = request.repeated()?;
    let mut reported = None;
    loop {
        let begun = backend.now();
        let error = match term(campaign(), &mut body, &office).await {
            Err(error) if !is_final(&error) => error,
            outcome => return outcome,
        };
        let has_led = error.is_lost() || error.is_max_hold_reached() || error.is_revoked();
        // An outage is reported once: a campaign that waited behind a leader first begins another one.
        let is_new = reported != Some(error.kind()) || backend.now().since(begun) > OUTAGE;
        if !has_led && is_new {
            campaigns.failed(&error);
        }
        reported = (!has_led).then(|| error.kind());
        backend.timer(PAUSE).await;
    }
}

/// Between two campaigns, so that others come first, and a server that is down gets few requests.
const PAUSE: Duration = Duration::from_secs(1);

/// Longer than a campaign takes to fail.
const OUTAGE: Duration = Duration::from_secs(60);

fn term<B, F>(
    request: LockRequest,
    body: &mut B,
    office: &watch::Sender<Option<Lease>>,
) -> Run<impl Future<Output = F::Output>>
where
    B: FnMut(Lease) -> F,
    F: Future,
{
    let cell = LeaseCell::default();
    let lease = cell.clone();
    let body = async move {
        let lease = lease.lease().await;
        let _published = Published::taken(office, &lease);
        body(lease).await
    };
    Run::new(request.acquire(), body).lease_into(cell)
}

/// Whether no further campaign would help. A refusal may be mended: a password, a right, or the data at the key.
fn is_final(error: &LockError) -> bool {
    match error.kind() {
        LockErrorKind::InvalidKey
        | LockErrorKind::InvalidOption
        | LockErrorKind::InvalidUrl
        | LockErrorKind::NotConfigured
        | LockErrorKind::HeldByCaller => true,
        _ => error.is_body_finished(),
    }
}

/// Part of the body, so it is dropped before the lock is released.
struct Published<'a>(&'a watch::Sender<Option<Lease>>);

impl<'a> Published<'a> {
    fn taken(office: &'a watch::Sender<Option<Lease>>, lease: &Lease) -> Self {
        office.send_replace(Some(lease.clone()));
        Self(office)
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

/// Campaigns and leads while it is awaited; made by [`LockRequest::lead`].
///
/// Spawn it as a task, and keep the task's handle: aborting it resigns, and awaiting it shows why the campaigns ended.
#[must_use = "no campaign begins until it is awaited or spawned"]
pub struct Leading<T> {
    campaigns: Pin<Box<dyn Future<Output = Result<T, LockError>> + Send>>,
    watched: watch::Receiver<Option<Lease>>,
}

impl<T> Leading<T> {
    /// Returns a handle that shows whether this process leads, for a status page or another task.
    ///
    /// A readiness probe that is true for the leader alone [stops a rolling
    /// deploy](crate::guide::operating#a-rolling-deploy).
    #[must_use]
    pub fn watch(&self) -> Leadership {
        let mut leadership = Leadership { watched: self.watched.clone(), was_leader: false };
        leadership.was_leader = leadership.is_leader();
        leadership
    }
}

impl<T> Future for Leading<T> {
    type Output = Result<T, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.campaigns.as_mut().poll(cx)
    }
}

impl<T> fmt::Debug for Leading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leading").field("is_leader", &self.watch().is_leader()).finish()
    }
}

/// Shows whether this process leads; made by [`Leading::watch`].
///
/// Cheap to clone. It does not keep the campaigns alive: when those have ended, it shows false.
#[derive(Clone)]
pub struct Leadership {
    watched: watch::Receiver<Option<Lease>>,
    /// What [`changed`](Leadership::changed) returned last, or was true when this was made.
    was_leader: bool,
}

impl Leadership {
    /// Returns whether the body runs now, under a lease that may still be relied on.
    ///
    /// # Guarantees
    /// It is false before the lock is released, and from the deadline of the lease on, by the clock of this process,
    /// also after a pause.
    ///
    /// # What this does not guarantee
    /// The result ages: a paused process may act on it too late.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        is_held(self.watched.borrow().clone().as_ref())
    }

    /// Waits until [`is_leader`](Leadership::is_leader) differs from what this handle returned last; returns it.
    ///
    /// The first call compares with when the handle was made. Two changes that are over before the call looks are none.
    /// When the campaigns have ended, it returns false once more if that is news, and never again.
    ///
    /// # Cancel safety
    /// Nothing is missed: if it differs already, the next call returns at once.
    pub async fn changed(&mut self) -> bool {
        loop {
            let lease = self.watched.borrow_and_update().clone();
            let is_leader = is_held(lease.as_ref());
            if is_leader != self.was_leader {
                self.was_leader = is_leader;
                return is_leader;
            }
            let lost = async {
                match lease.filter(|_| is_leader) {
                    Some(lease) => drop(lease.lost().await),
                    None => pending().await,
                }
            };
            let moved = async {
                if self.watched.changed().await.is_err() {
                    pending::<()>().await;
                }
            };
            first_of(pin!(lost), pin!(moved)).await;
        }
    }
}

fn is_held(lease: Option<&Lease>) -> bool {
    lease.is_some_and(Lease::is_held)
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("is_leader", &self.is_leader()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::Waker;

    use tokio::runtime::Builder;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::core::backend::{BackendContext, Fault, Outcome, TestStage};
    use crate::core::locker::Locker;
    use crate::core::process::clock::skip;
    use crate::core::telemetry::tests::logged;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Ttl;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + Clone + 'static>() {}
        check::<Leadership>();
    }

    #[test]
    fn a_campaign_can_be_spawned() {
        fn check<T: Send + Unpin + 'static>() {}
        check::<Leading<()>>();
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_lies_between_two_terms() {
        let (start, begun) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&begun);
        let request = Locker::in_memory().lock("k").max_hold(Duration::from_secs(1));
        let leading = request.lead(move |_| {
            noted.lock().unwrap().push(start.elapsed().as_secs());
            pending::<()>()
        });
        timeout(Duration::from_secs(9), leading).await.unwrap_err();
        assert_eq!(*begun.lock().unwrap(), [0, 2, 4, 6, 8]);
    }

    /// It has led, and campaigns again: nothing has failed.
    #[test]
    fn a_term_that_has_ended_is_no_failed_campaign() {
        let text = logged(|| {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let request = Locker::in_memory().lock("k").max_hold(Duration::from_secs(1));
                let leading = request.lead(|_| pending::<()>());
                timeout(Duration::from_secs(5), leading).await.unwrap_err();
            });
        });
        assert!(text.contains("was acquired") && !text.contains("campaign failed"), "{text}");
    }

    /// Goal: a server that comes back with another password, and refuses all campaigns in silence.
    #[test]
    fn an_outage_is_logged_once_for_each_reason() {
        use LockErrorKind::{Refused, Unavailable};
        let text = logged(|| {
            let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let locker = facing(vec![Refused, Refused, Refused, Unavailable, Unavailable]);
                locker.lock("k").lead(|_| async {}).await.unwrap();
            });
        });
        assert_eq!(text.matches("the campaign failed").count(), 2, "{text}");
    }

    /// Goal: the effects of a body that is over happen once.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_completed_after_its_loss_ends_the_campaigns() {
        let request = Locker::in_memory().lock("k");
        let leading = request.lead(|lease| async move { skip(lease.remaining()) });
        let error = timeout(LIMIT, leading).await.expect("it campaigns again").unwrap_err();
        let says = [LockError::is_lost, LockError::is_body_finished].map(|says| says(&error));
        assert_eq!(says, [true; 2], "{error}");
    }

    /// The fault of each acquisition, from the last one.
    struct Faults(Mutex<Vec<LockErrorKind>>);

    impl TestStage for Faults {
        fn next_fault(&self, _: &LockKey) -> Option<Fault> {
            self.0.lock().unwrap().pop().map(|kind| Fault::new(kind, "staged"))
        }

        fn count(&self, _: &LockKey, _: Outcome) {}
    }

    fn facing(faults: Vec<LockErrorKind>) -> Locker {
        let context = BackendContext::in_memory().staged(Arc::new(Faults(Mutex::new(faults))));
        Locker::builder().on(context, Ttl::DEFAULT).unwrap()
    }

    /// Goal: campaigns that end although their cause is mended a moment later.
    #[tokio::test(start_paused = true)]
    async fn campaigns_outlive_what_may_be_mended() {
        use LockErrorKind::{Refused, Unavailable, WrongType};
        for faults in [
            vec![Refused],
            vec![WrongType],
            vec![Unavailable],
            // It was down, and refuses while it comes back.
            vec![Refused, Unavailable],
            vec![WrongType, Refused, Unavailable],
        ] {
            let led = facing(faults).lock("k").lead(|_| async { 7 }).await;
            assert_eq!(led.unwrap(), 7);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn campaigns_end_where_no_repetition_helps() {
        use LockErrorKind::{HeldByCaller, InvalidKey, InvalidOption, InvalidUrl, NotConfigured};
        for kind in [HeldByCaller, InvalidKey, InvalidOption, InvalidUrl, NotConfigured] {
            let led = facing(vec![kind]).lock("k").lead(|_| async {}).await;
            assert_eq!(led.unwrap_err().kind(), kind);
        }
    }

    /// Method: nothing polls the campaigns, which could drop the body.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_passes_is_a_change_by_itself() {
        let mut leading = Locker::in_memory().lock("k").lead(|_| pending::<()>());
        let mut probe = leading.watch();
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut leading).poll(&mut context).is_pending());
        assert!(timeout(LIMIT, probe.changed()).await.unwrap());
        let mut late = leading.watch();
        let mut changed = pin!(late.changed());
        assert!(changed.as_mut().poll(&mut context).is_pending(), "it was so before");
        let pause = async { skip(Duration::from_secs(20)) };
        let (is_leader, ()) = tokio::join!(timeout(LIMIT, probe.changed()), pause);
        assert!(!is_leader.expect("nothing says so"));
    }
}
