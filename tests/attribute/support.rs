//! What the tests share: lockers, a look at a lock, an error type, and things that report when they
//! are dropped.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::Server;
use lockable_tests::wait::HANG;
use tokio::runtime::Builder;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// What shall come, comes before.
pub(crate) const LIMIT: Duration = HANG;

/// Longer than that.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// The lease of a call that sets none.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A locker with an empty store of its own.
pub(crate) async fn locker() -> Locker {
    Locker::connect("memory://").await.unwrap()
}

/// The same without a runtime, for the real clock: its leases outlast what a busy machine adds to a test.
pub(crate) fn locker_now() -> Locker {
    Locker::builder().url("memory://").expire(SECOND * 600).connect_lazy().unwrap()
}

/// A locker on a server, which may answer late on a busy machine.
pub(crate) fn patient(server: &Server) -> Locker {
    let builder = Locker::builder().url(server.url());
    builder.command_deadline(LONG).connect_deadline(LONG).connect_lazy().unwrap()
}

/// Asked without trying, because a body may not ask for its own lock. Nothing in memory ever waits.
pub(crate) fn is_free(locks: &Locker, key: &str) -> bool {
    now(locks.inspect(key)).unwrap().is_none()
}

/// The value of a future that has one at its first poll.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Another holder.
pub(crate) async fn hold(locks: &Locker, key: &str) -> LockGuard {
    locks.lock(key).try_acquire().await.unwrap()
}

/// The key of a call with these options and parameters.
macro_rules! key_of {
    ($locks:expr, [$($option:tt)*]($($parameter:ident: $type:ty = $value:expr),*)) => {{
        #[distributed_lock($($option)*, locker = locks, guard = lock)]
        async fn call(locks: &Locker, $($parameter: $type),*) -> Option<String> {
            Some(lock.key().to_string())
        }
        call($locks, $($value),*).await.unwrap()
    }};
}
pub(crate) use key_of;

/// Gives every other task a turn, so that the caller's future is polled at least twice.
pub(crate) async fn pause() {
    tokio::task::yield_now().await;
}

/// Lets so much of the paused clock's time go by, and everything happen that is due meanwhile.
#[expect(clippy::disallowed_methods, reason = "leases end by the clock")]
pub(crate) async fn elapse(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Moves the paused clock beyond the end of a lease within one poll, as a process does that was stopped.
pub(crate) fn skip_a_lease() {
    let advance = pin!(tokio::time::advance(LEASE + LEASE / 10));
    // The first poll moves the clock; the rest of it is for tasks that wait.
    assert!(now(poll_once(advance)).is_none());
}

/// Polls once and gives the value if there is one already.
pub(crate) async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

/// Starts a call and drops its future in the middle of the body.
pub(crate) async fn start_and_drop<F: Future>(call: F) {
    let mut call = pin!(call);
    assert!(poll_once(call.as_mut()).await.is_none(), "the call ended at once");
}

/// Where a sync function is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    NoRuntime,
    OneThread,
    Worker,
    BlockingThread,
}

impl Caller {
    /// Calls it there.
    pub(crate) fn run(self, call: impl FnOnce() + Send + 'static) {
        let mut runtime = match self {
            Self::NoRuntime => return call(),
            Self::OneThread | Self::BlockingThread => Builder::new_current_thread(),
            Self::Worker => Builder::new_multi_thread(),
        };
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        match self {
            Self::BlockingThread => runtime.block_on(runtime.spawn_blocking(call)).unwrap(),
            _ => runtime.block_on(runtime.spawn(async { call() })).unwrap(),
        }
    }
}

/// An error type as an application has it.
#[derive(Debug)]
pub(crate) enum ShopError {
    Lock(LockError),
    SoldOut,
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => error.fmt(f),
            Self::SoldOut => f.write_str("sold out"),
        }
    }
}

impl std::error::Error for ShopError {}

impl From<LockError> for ShopError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn write(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Something that writes its name, and the state of the lock, when it is dropped.
    pub(crate) fn drops(&self, name: &'static str) -> Drops {
        Drops { name, journal: self.clone(), lock: None }
    }
}

/// Writes down its drop; with a lock to look at, also whether that was held then.
pub(crate) struct Drops {
    name: &'static str,
    journal: Journal,
    lock: Option<(Locker, &'static str)>,
}

impl Drops {
    pub(crate) fn looking_at(mut self, locks: &Locker, key: &'static str) -> Self {
        self.lock = Some((locks.clone(), key));
        self
    }

    fn state(&self) -> &'static str {
        let Some((locks, key)) = &self.lock else { return "" };
        if is_free(locks, key) { " when free" } else { " when held" }
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        self.journal.write(format!("{}{}", self.name, self.state()));
    }
}
