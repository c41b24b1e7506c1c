//! A renewed body that takes one step after the other, and what became of it.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use lockable_tests::wait;
use tokio::task::JoinHandle;
use tracing::Level;

use crate::events;
use crate::support::{boot_time, elapse};

/// How far apart the steps are: many fit into a lease, and each is long beside the look at the clock
/// before it.
const STEP: Duration = Duration::from_millis(5);

/// A body under the lock `loss:NAME`, in a task of its own.
pub(super) struct Stepping {
    pub(super) key: String,
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
    /// Until when the lock is held, as the last step saw it that found it held.
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
            steps.until = begins + remaining;
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.steps.lock().unwrap().is_dropped = true;
    }
}

impl Stepping {
    /// Starts the body, and waits for its first step.
    pub(super) async fn start(locker: &Locker, name: &str, expire: Duration) -> Self {
        events::listen();
        let (locker, text, seen) = (locker.clone(), name.to_owned(), Arc::<Seen>::default());
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move { work(&locker, &text, expire, &noted).await });
        let stepping = Self { key: format!("disLock:loss:{name}"), seen, task };
        wait::until_async(wait::HANG, async || stepping.steps().count > 0).await;
        stepping
    }

    fn lease(&self) -> Lease {
        self.seen.lease.lock().unwrap().clone().unwrap()
    }

    /// The lease is renewed once more, and the body continues.
    pub(super) async fn outlives_its_lease(&self) {
        self.is_renewed().await;
        let before = self.steps().count;
        wait::until_async(wait::HANG, async || self.steps().count > before + 3).await;
    }

    /// Waits until the holder knows that its lease lasts longer.
    pub(super) async fn is_renewed(&self) {
        let lease = self.lease();
        let mut last = lease.remaining();
        let is_longer = async || {
            let left = lease.remaining();
            assert!(!left.is_zero(), "{}", lease.lost().await);
            left > mem::replace(&mut last, left)
        };
        wait::until_async(wait::HANG, is_longer).await;
    }

    /// The body is stopped by a renewal that found out, before its lease would have ended.
    pub(super) async fn ends_by_refusal(self, why: &str) {
        let until = boot_time() + self.lease().remaining();
        let (error, ended) = self.ends().await;
        assert!(error.to_string().contains(why), "{error}");
        assert!(ended < until, "the deadline came first");
    }

    /// The body is stopped at the deadline of its lease: not before, and no step begins after it.
    pub(super) async fn ends_at_its_deadline(self) {
        let seen = Arc::clone(&self.seen);
        let (error, ended) = self.ends().await;
        assert!(error.to_string().contains("its lease ended"), "{error}");
        let until = seen.steps.lock().unwrap().until;
        assert!(ended >= until, "{:?} too early", until.saturating_sub(ended));
    }

    /// The body, the caller and the log learn of the loss; gives the caller's error, and when it came.
    async fn ends(self) -> (LockError, Duration) {
        let lease = self.lease();
        let (error, ended) = wait::ends(async { (lease.lost().await, boot_time()) }).await;
        assert!(error.is_lost(), "{error}");
        let error = wait::ends(self.task).await.unwrap().unwrap_err();
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
