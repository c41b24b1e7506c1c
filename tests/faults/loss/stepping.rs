//! A renewed body that takes one step after the other, and what became of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use lockable_tests::{Pace, wait};
use tokio::task::JoinHandle;
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, MARGIN, boot_time, elapse};

/// How far apart the steps are: many fit into a lease, and each is long beside the look at the clock
/// before it.
const STEP: Duration = Duration::from_millis(5);

/// A body under the lock `loss:NAME`, in a task of its own.
pub(super) struct Stepping {
    pub(super) key: String,
    /// Since the start.
    pub(super) pace: Pace,
    seen: Arc<Seen>,
    task: JoinHandle<Result<(), LockError>>,
}

/// What the body notes.
#[derive(Debug, Default)]
struct Seen {
    steps: Mutex<Steps>,
    lease: Mutex<Option<Lease>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    count: u64,
    /// When the last step began that found the lock held.
    last: Duration,
    /// Until when the lock was held, as that step saw it.
    until: Duration,
    /// Steps that found the lock lost at their start.
    too_late: u64,
    is_dropped: bool,
}

#[distributed_lock(key = "loss:{name}", expire = expire, renew, guard = lock, locker = locker.clone())]
async fn work(
    locker: &Locker,
    name: &str,
    expire: Duration,
    seen: &Arc<Seen>,
) -> Result<(), LockError> {
    let noted = Noted(Arc::clone(seen));
    *seen.lease.lock().unwrap() = Some(lock.clone());
    loop {
        noted.step(&lock);
        elapse(STEP).await;
    }
}

/// Says when the body was dropped.
struct Noted(Arc<Seen>);

impl Noted {
    fn step(&self, lock: &Lease) {
        let mut steps = self.0.steps.lock().unwrap();
        steps.count += 1;
        let (begins, remaining) = (boot_time(), lock.remaining());
        if remaining.is_zero() {
            steps.too_late += 1;
        } else {
            (steps.last, steps.until) = (begins, begins + remaining);
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.steps.lock().unwrap().is_dropped = true;
    }
}

impl Stepping {
    /// Starts the body, and waits for its first steps.
    pub(super) async fn start(locker: &Locker, name: &str, expire: Duration) -> Self {
        events::listen();
        let (locker, text, seen) = (locker.clone(), name.to_owned(), Arc::<Seen>::default());
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move { work(&locker, &text, expire, &noted).await });
        let (key, pace) = (format!("disLock:loss:{name}"), Pace::start());
        let stepping = Self { key, pace, seen, task };
        wait::until_async(LIMIT, async || stepping.steps().count >= 3).await;
        stepping
    }

    pub(super) fn lease(&self) -> Lease {
        self.seen.lease.lock().unwrap().clone().unwrap()
    }

    /// The body is at work after the moment at which its lease would have ended without a renewal, if the
    /// machine has not taken a good part of that time away.
    pub(super) async fn outlives_its_lease(&self) {
        let rest = self.lease().remaining();
        elapse(rest).await;
        if !self.task.is_finished() && self.lease().is_held() {
            self.continues().await;
        } else {
            self.is_held_unless_stalled(rest / 3).await;
        }
    }

    /// Waits until the holder knows that its lease lasts longer.
    pub(super) async fn is_renewed(&self) {
        let (lease, rest) = (self.lease(), self.lease().remaining());
        let until = || boot_time() + lease.remaining();
        let before = until();
        wait::until_async(LIMIT, async || until() > before + rest / 5).await;
        self.is_held_unless_stalled(rest / 3).await;
    }

    /// The lock is held, if the machine has not taken that much time away since the start.
    pub(super) async fn is_held_unless_stalled(&self, stall: Duration) {
        let lease = self.lease();
        if !lease.is_held() {
            let (why, lag) = (lease.lost().await, self.pace.lag());
            assert!(lag > stall, "{why}, with a lag of {lag:?}");
        }
    }

    /// Waits for more steps than were taken so far.
    async fn continues(&self) {
        let before = self.steps().count;
        wait::until_async(LIMIT, async || self.steps().count > before + 3).await;
    }

    /// The body is stopped by a renewal that found out, before its lease would have ended.
    pub(super) async fn ends_by_refusal(self, why: &str) {
        let until = boot_time() + self.lease().remaining();
        let (error, ended) = self.ends().await;
        assert!(error.to_string().contains(why), "{error}");
        assert!(ended < until, "the deadline came first");
    }

    /// The body is stopped at the deadline of its lease: not before, and not later.
    pub(super) async fn ends_at_its_deadline(self) {
        let (seen, pace) = (Arc::clone(&self.seen), Pace::start());
        let (error, ended) = self.ends().await;
        assert!(error.to_string().contains("its lease ended"), "{error}");
        let latest = MARGIN + pace.lag();
        let steps = *seen.steps.lock().unwrap();
        assert!(ended >= steps.until, "{:?} too early", steps.until.saturating_sub(ended));
        assert!(ended <= steps.until + latest, "{:?} too late", ended.saturating_sub(steps.until));
        assert!(steps.last < steps.until && steps.until < steps.last + 20 * MARGIN);
    }

    /// The body, the caller and the log learn of the loss; gives the caller's error, and when it came.
    async fn ends(self) -> (LockError, Duration) {
        let lease = self.lease();
        let lost = async { (lease.lost().await, boot_time()) };
        let lost = tokio::time::timeout(LIMIT, lost).await;
        let (error, ended) = lost.expect("the lost signal fires");
        assert!(error.is_lost(), "{error}");
        let outcome = tokio::time::timeout(LIMIT, self.task).await.expect("the call ends with it");
        let error = outcome.unwrap().unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
        assert_eq!(error.key(), Some(self.key.as_str()));
        let steps = *self.seen.steps.lock().unwrap();
        // One step may have passed its look at the clock when another thread found the loss.
        assert!(steps.is_dropped && steps.too_late <= 1, "{steps:?}");
        let warnings = events::count(&self.key, Level::WARN, "the lock was lost");
        assert_eq!(warnings, 1, "{:?}", events::about(&self.key));
        (error, ended)
    }

    fn steps(&self) -> Steps {
        *self.seen.steps.lock().unwrap()
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        assert!(self.steps.lock().unwrap().is_dropped || std::thread::panicking());
    }
}
