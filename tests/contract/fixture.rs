//! What a claim needs of a backend besides lockers.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, LockRequest, Locker, LockerBuilder};
use lockable_tests::wait::{self, HANG};
use tokio::runtime::{Builder, Runtime};

mod bare;
mod cluster;
mod memory;
mod redis;
mod sentinel;
mod served;
mod shared;
mod stub;

pub(crate) use bare::Bare;
pub(crate) use cluster::Sharded;
pub(crate) use memory::Memory;
pub(crate) use redis::Redis;
pub(crate) use sentinel::Sentinel;
pub(crate) use served::real_time;
pub(crate) use stub::Stub;

use self::shared::Shared;

/// A store of the test's own. Claims know no more of it, so that each is compiled once for all backends: compiled for
/// each backend, they took three times as long.
pub(crate) type Store = dyn Fixture;

/// A claim about a store, or about that of one backend.
type Claim<F> = for<'a> fn(&'a F) -> Boxed<'a>;

pub(crate) type Boxed<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What a backend's tests can do with its store: they have power over its time and its data.
pub(crate) trait Fixture: Sync {
    /// A lease to wait for the end of. On a busy machine it may end between any two steps of a claim.
    fn short(&self) -> Duration;

    /// A lease that is renewed while a claim takes its steps. Its renewal is waited for; only a machine that stands still
    /// for most of it misses that.
    fn lease(&self) -> Duration;

    /// Whether no time passes between the steps of a claim on one thread, so that it can say how long something takes.
    fn is_exact(&self) -> bool;

    /// One more store of this backend.
    fn another(&self) -> Box<Store>;

    /// A runtime of one thread, on which the fixture controls the store's time.
    fn runtime(&self) -> Runtime;

    /// Where the store is. A locker that connects there has nothing in common with the others but
    /// the store, as if it were another process's.
    fn url(&self) -> String;

    /// All names in the store and how long each still lives; `None` is for ever.
    fn keyspace(&self) -> Vec<(String, Option<Duration>)>;

    /// The text that is stored under a lock's name, where the store keeps one that can be seen.
    fn owner(&self, key: &str) -> Option<String>;

    /// How many requests about locks have reached the store, but for the fixture's own; zero where there are
    /// no requests.
    fn requests(&self) -> u64;

    /// Forgets everything, as a server does that restarts without its data.
    fn lose_all_data(&self);

    /// Takes a lock away, as an outsider can.
    fn delete(&self, key: &str);

    /// Replaces the holder, if there is one, by another, as an outsider can.
    fn put_foreign(&self, key: &str, life: Duration) {
        self.put(key, FOREIGN, life);
    }

    /// Replaces what is under the name by this value.
    fn put(&self, key: &str, value: &str, life: Duration);

    /// Returns once the store has let the lease under this name pass.
    fn pass<'a>(&'a self, key: &'a str) -> Boxed<'a>;

    /// Takes the thread's time and lets nothing else run on it meanwhile.
    fn block(&self, duration: Duration);

    /// Returns once the condition holds, without letting an [ample](AMPLE) lease pass.
    fn wait_for<'a>(&'a self, condition: &'a mut dyn FnMut() -> bool) -> Boxed<'a>;
}

impl Store {
    /// As [`wait_for`](Fixture::wait_for), of a condition that is written in place.
    pub(crate) async fn eventually(&self, mut condition: impl FnMut() -> bool) {
        self.wait_for(&mut condition).await;
    }

    /// Lets so much of the store's time go by.
    #[expect(clippy::disallowed_methods, reason = "leases end by the store's clock")]
    pub(crate) async fn elapse(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    pub(crate) async fn locker(&self) -> Locker {
        self.builder().connect().await.unwrap()
    }

    pub(crate) fn builder(&self) -> LockerBuilder {
        let builder = Locker::builder().url(self.url()).expire(AMPLE);
        builder.command_deadline(LIMIT).connect_deadline(LIMIT)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.keyspace().iter().any(|(name, _)| name == key)
    }

    /// All names in the store but for the fence counters.
    pub(crate) fn locks(&self) -> Vec<String> {
        let names = self.keyspace().into_iter().map(|(name, _)| name);
        names.filter(|name| !name.starts_with(FENCES)).collect()
    }

    /// How long the lock under this name still lives in the store.
    pub(crate) fn life(&self, key: &str) -> Option<Duration> {
        self.keyspace().into_iter().find(|(name, _)| name == key)?.1
    }
}

/// What can become of a held lock in the store without its holder.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Harm {
    Deleted,
    Flushed,
    Taken,
}

impl Harm {
    pub(crate) fn befall(self, store: &Store) {
        match self {
            Self::Deleted => store.delete(NAME),
            Self::Flushed => store.lose_all_data(),
            Self::Taken => store.put_foreign(NAME, 20 * store.lease()),
        }
    }
}

/// Runs a claim on one thread; time that the fixture controls is paused there.
pub(crate) fn one_thread<F: Fixture + 'static>(start: fn() -> F, claim: Claim<F>) {
    within_limit(move || run(start, F::runtime, claim));
}

/// Runs a claim on several threads, in real time.
pub(crate) fn many_threads<F: Fixture + 'static>(start: fn() -> F, claim: Claim<F>) {
    let runtime =
        |_: &F| Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    within_limit(move || run(start, runtime, claim));
}

/// Fails a test that hangs. The limit is real time, whatever the runtime's clock does.
fn within_limit(test: impl FnOnce() + Send + 'static) {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let thread = thread::Builder::new().name(name).spawn(test).expect("a thread can start");
    wait::until(TEST_LIMIT, || thread.is_finished());
    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
}

/// The claim, and then the one that every test makes.
fn run<F: Fixture + 'static>(start: fn() -> F, runtime: fn(&F) -> Runtime, claim: Claim<F>) {
    // Also of a test without servers, so that the next one finds those that the last one has used.
    let _shared = Shared::now();
    let store = start();
    runtime(&store).block_on(async {
        claim(&store).await;
        assert_clean(&store).await;
    });
}

/// Nothing is left but fence counters that have an end.
async fn assert_clean(store: &Store) {
    // Otherwise a request that was given up may still be on its way to the store.
    drained().await;
    assert_eq!(store.locks(), [""; 0]);
    for (name, life) in store.keyspace() {
        let life = life.unwrap_or_else(|| panic!("{name} stays for ever"));
        assert!(Duration::ZERO < life && life <= FENCE_LIFE, "{name} lives for {life:?}");
        assert!(name.starts_with(FENCES) && name.contains('{'), "{name}");
    }
}

/// Waits until the background has nothing left to release.
///
/// It works in real time; a paused clock would run ahead of it, and leases would end, if the test's
/// runtime were idle.
pub(crate) async fn drained() {
    let (done, is_done) = channel::<()>();
    let busy = tokio::task::spawn_blocking(move || is_done.recv_timeout(HANG));
    lockable_runtime::shutdown(HANG).await.unwrap();
    drop(done);
    drop(busy.await);
}

/// The name of the lock that most claims are about, before and with its prefix.
pub(crate) const KEY: &str = "order:7";
pub(crate) const NAME: &str = "disLock:order:7";

/// What another library writes.
const FOREIGN: &str = "another client's";

/// The name of its fence counter.
pub(crate) const FENCE: &str = "lockable:fence:{4EB}";

/// The only names that may stay when no lock is held.
const FENCES: &str = "lockable:fence:";

/// How long a fence counter may stay: ten times the longest lease, which is twice an ample one. The clocks of two paused
/// runtimes may differ a little.
const FENCE_LIFE: Duration = Duration::from_secs(20 * 300 + 1);

/// Only a test that hangs takes so long; less than an ample lease, so that no end of one hides that.
const TEST_LIMIT: Duration = Duration::from_secs(240);

/// The lease of a lock that no claim lets pass.
pub(crate) const AMPLE: Duration = Duration::from_secs(300);

/// The deadlines and limits that no claim lets pass: longer than any state is waited for, and less than an ample lease,
/// so that a lock that was left behind is noticed, also by a paused clock.
pub(crate) const LIMIT: Duration = Duration::from_secs(200);

/// The lock `order:7`, which must be free.
pub(crate) async fn hold(locker: &Locker) -> LockGuard {
    locker.lock(KEY).try_acquire().await.unwrap()
}

/// The lock `order:7` for the fixture's short lease, which may be over any time.
pub(crate) async fn hold_shortly(store: &Store, locker: &Locker) -> LockGuard {
    in_time(|| locker.lock(KEY).expire(store.short())).await
}

/// The guard of a short lease. An answer that comes after the lease's end is an error, and the query is put again.
pub(crate) async fn in_time(request: impl Fn() -> LockRequest) -> LockGuard {
    loop {
        match request().acquire().await {
            Ok(guard) => return guard,
            Err(error) => assert!(error.is_unavailable(), "{error}"),
        }
    }
}

/// What comes of a body under a short lease, which may end before the body starts: then it is asked for again.
pub(crate) async fn run_in_time<T>(
    request: impl Fn() -> LockRequest,
    body: impl AsyncFn() -> T,
) -> Result<T, LockError> {
    let has_started = Cell::new(false);
    loop {
        let started = async {
            has_started.set(true);
            body().await
        };
        let outcome = request().run(started).await;
        if has_started.get() {
            return outcome;
        }
    }
}

/// The lock `order:7` for the fixture's renewed lease; it must be free.
pub(crate) async fn hold_renewed(store: &Store, locker: &Locker) -> LockGuard {
    locker.lock(KEY).expire(store.lease()).renew().try_acquire().await.unwrap()
}

/// Returns when nothing was asked of the store for a time that no renewal waits for, which never comes where something is
/// still renewed.
pub(crate) async fn assert_quiet(store: &Store) {
    let look = || (store.requests(), store.locks());
    wait::until_async(HANG, async || {
        let before = look();
        store.elapse(store.lease() / 2).await;
        look() == before
    })
    .await;
}

/// The value of a future that is there at its first poll.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
