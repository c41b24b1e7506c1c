//! `wait`, `fair` and `blocking`: who waits, how long, in which order, and what a call gives that gave up.

use lockable_runtime::LockErrorKind;
use std::future::Future;
use std::thread;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, Locker, RequestId, distributed_lock};
use lockable_tests::{Server, wait};
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_blocking};
use tokio::time::Instant;
use tracing::Level;

use crate::events;
use crate::support::{
    BoxFuture, Journal, LIMIT, SECOND, elapse, hold, is_free, locker, locker_now, now, patient,
    pause, start_and_drop,
};

/// Every kind of call that waits for one key.
struct Shop(Locker);

impl Shop {
    #[distributed_lock(key = "k", locker = self.0, wait)]
    async fn asynchronous(&self, journal: &Journal, name: &str) -> Option<()> {
        assert!(!is_free(&self.0, "k"), "runs without its lock");
        journal.write(name);
        Some(())
    }

    #[distributed_lock(key = "k", locker = self.0, wait = SECOND * 30)]
    fn boxed<'a>(&'a self, journal: &'a Journal) -> BoxFuture<'a, Result<(), LockError>> {
        Box::pin(async move {
            assert!(!is_free(&self.0, "k"), "runs without its lock");
            journal.write("boxed");
            Ok(())
        })
    }

    #[distributed_lock(key = "k", locker = self.0, wait = "30s")]
    fn sync(&self, journal: &Journal) -> Option<()> {
        assert!(!is_free(&self.0, "k"), "runs without its lock");
        journal.write("sync");
        Some(())
    }

    #[distributed_lock(key = "k", locker = self.0, wait = 30, blocking)]
    fn blocking(&self, journal: &Journal) -> Option<()> {
        assert!(!is_free(&self.0, "k"), "runs without its lock");
        journal.write("blocking");
        Some(())
    }
}

/// Another holder has the lock, and releases it a second later: the calls of a test wait by then.
async fn held_for_a_second(locks: &Locker) -> impl Future<Output = ()> + use<> {
    let guard = hold(locks, "k").await;
    async move {
        elapse(SECOND).await;
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_runs_after_the_holder() {
    let (shop, journal) = (Shop(locker().await), Journal::default());
    let start = Instant::now();
    let release = held_for_a_second(&shop.0).await;
    let calls = tokio::join!(shop.asynchronous(&journal, "async"), shop.boxed(&journal), release);
    assert!(calls.0.is_some() && calls.1.is_ok());
    assert_eq!((start.elapsed(), journal.entries().concat()), (SECOND, "asyncboxed".to_owned()));
    assert!(is_free(&shop.0, "k"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_need_not_wait_runs_at_once() {
    let (shop, journal, start) = (Shop(locker().await), Journal::default(), Instant::now());
    for _ in 0..2 {
        assert!(shop.asynchronous(&journal, "async").await.is_some());
        assert!(shop.boxed(&journal).await.is_ok());
    }
    assert_eq!((start.elapsed(), journal.entries().len()), (Duration::ZERO, 4));
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_process_run_in_order() {
    let (locks, journal) = (locker().await, Journal::default());
    let (release, mut calls) = (held_for_a_second(&locks).await, JoinSet::new());
    let names: Vec<_> = (0..40).map(|number| number.to_string()).collect();
    for name in names.clone() {
        let (shop, journal) = (Shop(locks.clone()), journal.clone());
        calls.spawn(async move { shop.asynchronous(&journal, &name).await });
    }
    release.await;
    assert!(calls.join_all().await.iter().all(Option::is_some));
    assert_eq!(journal.entries(), names);
}

#[tokio::test(start_paused = true)]
async fn a_fair_lock_alternates_between_lockers() {
    #[distributed_lock(key = "k", locker = locks, wait = "1m", fair)]
    async fn call(locks: Locker, journal: Journal, name: &str) -> Result<(), LockError> {
        journal.write(name);
        Ok(())
    }
    let connect = || Locker::connect("memory://fair-attribute");
    let (one, two, journal) =
        (connect().await.unwrap(), connect().await.unwrap(), Journal::default());
    let release = held_for_a_second(&one).await;
    let wait = |locks: &Locker, name| call(locks.clone(), journal.clone(), name);
    let calls =
        tokio::join!(wait(&one, "a"), wait(&one, "a"), wait(&two, "b"), wait(&two, "b"), release);
    assert!(calls.0.is_ok() && calls.1.is_ok() && calls.2.is_ok() && calls.3.is_ok());
    let order = journal.entries().concat();
    assert!(["abab", "baba"].contains(&order.as_str()), "{order}");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_leaves_nothing() {
    let (shop, journal) = (Shop(locker().await), Journal::default());
    let guard = hold(&shop.0, "k").await;
    start_and_drop(shop.asynchronous(&journal, "async")).await;
    start_and_drop(shop.boxed(&journal)).await;
    guard.release().await.unwrap();
    elapse(SECOND).await;
    assert!(is_free(&shop.0, "k") && journal.entries().is_empty());
    assert!(shop.asynchronous(&journal, "async").await.is_some());
}

#[distributed_lock(key = "k", locker = locks, wait = *limit, on_busy = skip)]
async fn skips(locks: &Locker, limit: &Duration) -> Result<Option<u8>, LockError> {
    unreachable!("runs without its lock")
}

/// Exactly one event: the warning that names the key.
fn assert_one_warning() {
    events::assert_only(Level::WARN, &["disLock:k", "limit"]);
}

#[tokio::test(start_paused = true)]
async fn at_its_limit_a_call_found_the_lock_busy() {
    #[distributed_lock(key = "k", locker = locks, wait = 1)]
    async fn unit(locks: &Locker) {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = "1s")]
    fn boxed(locks: &Locker) -> BoxFuture<'_, Option<u8>> {
        Box::pin(async { unreachable!("runs without its lock") })
    }
    #[distributed_lock(key = "k", locker = locks, wait = SECOND)]
    async fn result(locks: &Locker) -> Result<u8, LockError> {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = 1, on_busy = name.len(), on_error = |_| 0)]
    async fn answered(locks: &Locker, name: String) -> usize {
        unreachable!("runs without its lock, for {name}")
    }
    let (locks, start) = (locker().await, Instant::now());
    let _held = locks.lock("k").expire(SECOND * 60).acquire().await.unwrap();
    events::listen();
    unit(&locks).await;
    assert_one_warning();
    assert_eq!(boxed(&locks).await, None);
    assert_one_warning();
    let error = result(&locks).await.unwrap_err();
    assert!(error.is_wait_limit_reached() && error.is_busy(), "{error}");
    assert_eq!(error.key(), Some("disLock:k"));
    assert_one_warning();
    assert_eq!(skips(&locks, &SECOND).await.unwrap(), None);
    assert_one_warning();
    assert_eq!(answered(&locks, "four".to_owned()).await, 4);
    assert_one_warning();
    assert_eq!(start.elapsed(), SECOND * 5);
}

#[tokio::test(start_paused = true)]
async fn no_time_to_wait_is_one_try() {
    let (locks, start) = (locker().await, Instant::now());
    let guard = hold(&locks, "k").await;
    assert_eq!(skips(&locks, &Duration::ZERO).await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::ZERO);
    guard.release().await.unwrap();
}

#[test]
fn a_sync_call_at_its_limit_is_busy() {
    #[distributed_lock(key = "k", locker = locks, wait = "20ms")]
    fn result(locks: &Locker) -> Result<u8, LockError> {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = "20ms", on_busy = name.len(),
        on_error = |_| 0, blocking)]
    fn answered(locks: &Locker, name: String) -> usize {
        unreachable!("runs without its lock, for {name}")
    }
    let locks = locker_now();
    let guard = now(locks.lock("k").expire(SECOND * 60).acquire()).unwrap();
    events::listen();
    assert!(result(&locks).unwrap_err().is_wait_limit_reached());
    assert_one_warning();
    assert_eq!(answered(&locks, "four".to_owned()), 4);
    assert_one_warning();
    now(guard.release()).unwrap();
    assert!(is_free(&locks, "k"));
}

/// Another holder, until a call waits; what they write distinguishes them.
fn hold_until_a_call_waits(locks: &TestLocks, journal: &Journal) -> JoinHandle<()> {
    let (other, locks, journal) = (locks.hold("k"), locks.clone(), journal.clone());
    tokio::spawn(async move {
        while locks.waiting("k") == 0 {
            pause().await;
        }
        journal.write("held");
        drop(other);
    })
}

#[tokio::test]
async fn a_declared_sync_call_waits_in_spawn_blocking() {
    let (locks, journal) = (TestLocks::new(), Journal::default());
    let holder = hold_until_a_call_waits(&locks, &journal);
    let (shop, there) = (Shop(locks.locker().clone()), journal.clone());
    assert!(spawn_blocking(move || shop.blocking(&there)).await.unwrap().is_some());
    holder.await.unwrap();
    assert_eq!(journal.entries(), ["held", "blocking"]);
    assert!(is_free(locks.locker(), "k"));
}

/// The runtime has one worker, which the holder needs while the call waits on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_waiting_sync_call_lets_the_holder_run() {
    let (locks, journal) = (TestLocks::new(), Journal::default());
    let call = || {
        let (shop, journal) = (Shop(locks.locker().clone()), journal.clone());
        move || shop.sync(&journal)
    };
    for _ in 0..3 {
        let (holder, call_there) = (hold_until_a_call_waits(&locks, &journal), call());
        assert!(tokio::spawn(async move { call_there() }).await.unwrap().is_some());
        holder.await.unwrap();
        let holder = hold_until_a_call_waits(&locks, &journal);
        assert!(spawn_blocking(call()).await.unwrap().is_some());
        holder.await.unwrap();
        let holder = hold_until_a_call_waits(&locks, &journal);
        assert!(call()().is_some());
        holder.await.unwrap();
    }
    assert_eq!(journal.entries(), ["held", "sync"].repeat(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sync_calls_wait_for_a_lock_on_a_server() {
    #[distributed_lock(key = "k", locker = locks, wait, guard = lock)]
    fn call(locks: &Locker, journal: &Journal) -> Result<(), LockError> {
        assert!(lock.key().as_str() == "disLock:k");
        journal.write("sync");
        Ok(())
    }
    // It was handed off, and a machine that stalls for a second loses it; before the body, or after it.
    let is_served = |outcome: &Result<(), LockError>| {
        assert!(outcome.as_ref().err().is_none_or(LockError::is_lost), "{outcome:?}");
        outcome.is_ok()
    };
    let server = Server::start();
    let (locks, journal) = (patient(&server), Journal::default());
    let (guard, admin, there) = (hold(&locks, "k").await, server.admin(), journal.clone());
    let holder = tokio::spawn(async move {
        let is_queued = move || !admin.keys("lockable:queue:*").is_empty();
        spawn_blocking(move || wait::until(LIMIT, is_queued)).await.unwrap();
        there.write("held");
        guard.release().await.unwrap();
    });
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (locks, journal) = (locks.clone(), journal.clone());
            spawn_blocking(move || call(&locks, &journal))
        })
        .collect();
    let mut whole = usize::from(is_served(&call(&locks, &journal)));
    for called in calls {
        whole += usize::from(is_served(&called.await.unwrap()));
    }
    holder.await.unwrap();
    assert_eq!(journal.entries()[0], "held");
    assert!((whole + 1..=10).contains(&journal.entries().len()), "{:?}", journal.entries());
    assert!(locks.inspect("k").await.unwrap().is_none());
}

/// What a sync call gives for which another holder has left as soon as it waited.
fn after_another_holder<T: Send>(locks: &TestLocks, call: impl FnOnce() -> T + Send) -> T {
    let other = locks.hold("k");
    thread::scope(|scope| {
        let call = scope.spawn(call);
        while locks.waiting("k") == 0 {
            thread::yield_now();
        }
        drop(other);
        call.join().unwrap()
    })
}

/// The same until a call has its lock to its end: a machine that stalls for the first second of a hand-off loses it.
fn served_after_another_holder<T: Send>(
    locks: &TestLocks,
    call: impl Fn() -> Option<T> + Send + Sync,
) {
    wait::until(LIMIT, || after_another_holder(locks, &call).is_some());
}

#[test]
fn a_sync_call_outside_of_any_runtime_waits() {
    let (locks, journal) = (TestLocks::new(), Journal::default());
    let shop = Shop(locks.locker().clone());
    served_after_another_holder(&locks, || shop.sync(&journal));
    served_after_another_holder(&locks, || shop.blocking(&journal));
    let mut entries = journal.entries();
    entries.dedup();
    assert_eq!(entries, ["sync", "blocking"]);
    assert!(is_free(&shop.0, "k"));
}

#[distributed_lock(key = "k", locker = locks, wait)]
fn must_not_wait_here(locks: &Locker) -> Result<(), LockError> {
    unreachable!("runs although it must not wait here")
}

#[distributed_lock(key = "k", locker = locks, wait = "1h", on_busy = skip)]
fn must_not_wait_here_either(locks: &Locker) {
    unreachable!("runs although it must not wait here")
}

/// Refused before anything is asked, whether the lock is free or not, and not as a busy lock.
async fn refuses_to_wait_here(locks: &Locker) {
    events::listen();
    for is_held in [false, true] {
        let guard = if is_held { Some(hold(locks, "k").await) } else { None };
        let error = must_not_wait_here(locks).unwrap_err();
        assert!(error.kind() == LockErrorKind::InvalidOption, "{error}");
        assert_eq!(error.key(), Some("disLock:k"));
        let text = error.to_string();
        assert!(text.contains("`blocking`") && text.contains("`spawn_blocking`"), "{text}");
        must_not_wait_here_either(locks);
        events::assert_only(Level::ERROR, &[]);
        drop(guard);
    }
    assert!(is_free(locks, "k"));
}

#[tokio::test]
async fn a_sync_call_refuses_to_block_a_whole_runtime() {
    let locks = locker().await;
    refuses_to_wait_here(&locks).await;
    // The two cannot be distinguished, so the call must allow it here.
    let error = spawn_blocking(move || must_not_wait_here(&locks)).await.unwrap().unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidOption, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_sync_call_waits_in_a_local_set() {
    let locks = locker().await;
    LocalSet::new().run_until(refuses_to_wait_here(&locks)).await;
}

/// The value in the backend stays as it is while a lock is passed on without asking that.
#[tokio::test(start_paused = true)]
async fn a_handed_off_lock_names_its_turns_first_request() {
    #[distributed_lock(key = "k", locker = locks, wait)]
    async fn call(locks: &Locker) -> Option<String> {
        let holder = locks.inspect("k").await.unwrap()?;
        holder.request_id().map(ToOwned::to_owned)
    }
    let (locks, a, b) = (locker().await, RequestId::new("a"), RequestId::new("b"));
    let release = held_for_a_second(&locks).await;
    let ids = tokio::join!(a.scope(call(&locks)), b.scope(call(&locks)), release);
    assert_eq!((ids.0.as_deref(), ids.1.as_deref()), (Some("a"), Some("a")));
}

/// A waiter is granted a short lease first, and has its whole one soon.
#[tokio::test(start_paused = true)]
async fn a_body_that_waited_has_its_whole_lease() {
    #[distributed_lock(key = "k", locker = locks, wait, expire = 20, guard = lock)]
    async fn call(locks: &Locker) -> Option<()> {
        elapse(SECOND * 19).await;
        assert!(lock.is_held());
        Some(())
    }
    let locks = locker().await;
    let release = held_for_a_second(&locks).await;
    assert!(tokio::join!(call(&locks), release).0.is_some());
}

/// No holder hands the lock off: the call tries again when the dead holder's lease has ended.
#[tokio::test(start_paused = true)]
async fn a_dead_holders_successor_has_its_whole_lease() {
    #[distributed_lock(key = "k", locker = locks, wait, guard = lock)]
    async fn call(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    let locks = Locker::connect("memory://dead-holder").await.unwrap();
    MemoryStore::open("dead-holder").unwrap().put_foreign("disLock:k", SECOND * 9);
    assert!(call(&locks).await.unwrap() > SECOND * 9);
}

#[test]
fn a_sync_body_that_waited_has_its_whole_lease() {
    #[distributed_lock(key = "k", locker = locks, wait, guard = lock)]
    fn call(locks: &Locker) -> Option<()> {
        wait::until(LIMIT, || lock.remaining() > SECOND * 5 || !lock.is_held());
        Some(())
    }
    let locks = TestLocks::new();
    served_after_another_holder(&locks, || call(locks.locker()));
}
