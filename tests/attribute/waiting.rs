//! `wait`, `fair` and `blocking`: who waits, for how long, in which order, and what a call gives that
//! gave up.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_runtime::{LockError, Locker, RequestId, distributed_lock};
use lockable_tests::Server;
use tokio::task::{JoinSet, LocalSet, spawn_blocking};
use tokio::time::Instant;
use tracing::Level;

use crate::events;
use crate::support::{
    Journal, ShopError, elapse, hold, is_free, is_free_now, locker, locker_now, now, pause,
    start_and_drop,
};

const SECOND: Duration = Duration::from_secs(1);

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Every kind of call that waits for one key.
struct Shop(Locker);

impl Shop {
    #[distributed_lock(key = "k", locker = self.0, wait)]
    async fn asynchronous(&self, journal: &Journal, name: &str) -> Option<()> {
        assert!(!is_free(&self.0, "k").await, "runs without its lock");
        journal.write(name);
        Some(())
    }

    #[distributed_lock(key = "k", locker = self.0, wait = SECOND * 30)]
    fn boxed<'a>(&'a self, journal: &'a Journal) -> BoxFuture<'a, Result<(), LockError>> {
        Box::pin(async move {
            assert!(!is_free(&self.0, "k").await, "runs without its lock");
            journal.write("boxed");
            Ok(())
        })
    }

    #[distributed_lock(key = "k", locker = self.0, wait = "30s")]
    fn sync(&self, journal: &Journal) -> Option<()> {
        assert!(!is_free_now(&self.0, "k"), "runs without its lock");
        journal.write("sync");
        Some(())
    }

    #[distributed_lock(key = "k", locker = self.0, wait = 30, blocking)]
    fn blocking(&self, journal: &Journal) -> Option<()> {
        assert!(!is_free_now(&self.0, "k"), "runs without its lock");
        journal.write("blocking");
        Some(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_runs_after_the_holder() {
    let (shop, journal) = (Shop(locker().await), Journal::default());
    let guard = hold(&shop.0, "k").await;
    let holder = async {
        elapse(SECOND * 5).await;
        journal.write("held");
        guard.release().await.unwrap();
    };
    let calls = tokio::join!(shop.asynchronous(&journal, "async"), shop.boxed(&journal), holder);
    assert!(calls.0.is_some() && calls.1.is_ok());
    assert_eq!(journal.entries(), ["held", "async", "boxed"]);
    assert!(is_free(&shop.0, "k").await);
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
    let guard = hold(&locks, "k").await;
    let mut calls = JoinSet::new();
    let names: Vec<_> = (0..40).map(|number| number.to_string()).collect();
    for name in names.clone() {
        let (shop, journal) = (Shop(locks.clone()), journal.clone());
        calls.spawn(async move { shop.asynchronous(&journal, &name).await });
    }
    elapse(SECOND).await;
    guard.release().await.unwrap();
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
    let guard = hold(&one, "k").await;
    let wait = |locks: &Locker, name| call(locks.clone(), journal.clone(), name);
    let release = async {
        elapse(SECOND).await;
        guard.release().await.unwrap();
    };
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
    assert!(is_free(&shop.0, "k").await && journal.entries().is_empty());
    assert!(shop.asynchronous(&journal, "async").await.is_some());
}

/// What calls of every return type give at their limit, each a second long.
mod limits {
    use super::{BoxFuture, Duration, LockError, Locker, SECOND, ShopError, distributed_lock};

    #[distributed_lock(key = "k", locker = locks, wait = 1)]
    pub(super) async fn unit(locks: &Locker) {
        unreachable!("runs without its lock")
    }

    #[distributed_lock(key = "k", locker = locks, wait = "1s")]
    pub(super) fn option(locks: &Locker) -> BoxFuture<'_, Option<u8>> {
        Box::pin(async { unreachable!("runs without its lock") })
    }

    #[distributed_lock(key = "k", locker = locks, wait = SECOND)]
    pub(super) async fn result(locks: &Locker) -> Result<u8, ShopError> {
        unreachable!("runs without its lock")
    }

    #[distributed_lock(key = "k", locker = locks, wait = *limit, on_busy = skip)]
    pub(super) async fn skips(locks: &Locker, limit: &Duration) -> Result<Option<u8>, LockError> {
        unreachable!("runs without its lock")
    }

    #[distributed_lock(key = "k", locker = locks, wait = 1, on_busy = name.len(), on_error = |_| 0)]
    pub(super) async fn answered(locks: &Locker, name: String) -> usize {
        unreachable!("runs without its lock, for {name}")
    }

    #[distributed_lock(key = "k", locker = locks, wait = 1, on_busy = 7, on_error = |_| 0)]
    pub(super) fn answered_boxed(locks: &Locker) -> BoxFuture<'_, usize> {
        Box::pin(async { unreachable!("runs without its lock") })
    }

    /// Busy is by return type here, and every other failure is not.
    #[distributed_lock(key = "k", locker = locks, wait = 1, on_error = |_| Some(0))]
    pub(super) async fn only_on_error(locks: &Locker) -> Option<u8> {
        unreachable!("runs without its lock")
    }
}

/// Exactly one event: the warning that names the key.
fn assert_one_warning() {
    let logged = events::take();
    assert!(matches!(&*logged, [event] if event.level == Level::WARN), "{logged:#?}");
    assert!(
        logged[0].fields.contains("disLock:k") && logged[0].fields.contains("limit"),
        "{logged:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn at_its_limit_a_call_found_the_lock_busy() {
    let (locks, start) = (locker().await, Instant::now());
    let _held = locks.lock("k").expire(SECOND * 60).acquire().await.unwrap();
    events::listen();
    limits::unit(&locks).await;
    assert_one_warning();
    assert_eq!(limits::option(&locks).await, None);
    assert_one_warning();
    let error = limits::result(&locks).await.unwrap_err();
    let ShopError::Lock(error) = error else { panic!("{error}") };
    assert!(error.is_wait_limit_reached() && error.is_busy(), "{error}");
    assert_eq!(error.key(), Some("disLock:k"));
    assert_one_warning();
    assert_eq!(limits::skips(&locks, &SECOND).await.unwrap(), None);
    assert_one_warning();
    assert_eq!(limits::answered(&locks, "four".to_owned()).await, 4);
    assert_eq!(limits::answered_boxed(&locks).await, 7);
    events::take();
    assert_eq!(limits::only_on_error(&locks).await, None);
    assert_one_warning();
    assert_eq!(start.elapsed(), SECOND * 7);
}

#[tokio::test(start_paused = true)]
async fn no_time_to_wait_is_one_try() {
    let (locks, start) = (locker().await, Instant::now());
    let guard = hold(&locks, "k").await;
    assert_eq!(limits::skips(&locks, &Duration::ZERO).await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::ZERO);
    guard.release().await.unwrap();
}

#[test]
fn a_sync_call_at_its_limit_is_busy() {
    #[distributed_lock(key = "k", locker = locks, wait = "20ms")]
    fn unit(locks: &Locker) {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = "20ms")]
    fn result(locks: &Locker) -> Result<u8, ShopError> {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = "20ms", on_busy = skip, blocking)]
    fn skips(locks: &Locker) -> Result<(), LockError> {
        unreachable!("runs without its lock")
    }
    #[distributed_lock(key = "k", locker = locks, wait = "20ms", on_busy = name.len(), on_error = |_| 0)]
    fn answered(locks: &Locker, name: String) -> usize {
        unreachable!("runs without its lock, for {name}")
    }
    let locks = locker_now();
    let guard = now(locks.lock("k").expire(SECOND * 60).acquire()).unwrap();
    events::listen();
    unit(&locks);
    assert_one_warning();
    assert!(matches!(result(&locks), Err(ShopError::Lock(error)) if error.is_wait_limit_reached()));
    assert_one_warning();
    assert!(skips(&locks).is_ok());
    assert_one_warning();
    assert_eq!(answered(&locks, "four".to_owned()), 4);
    assert_one_warning();
    now(guard.release()).unwrap();
    assert!(is_free_now(&locks, "k"));
}

/// Releases after the other calls had the time to wait; what they write distinguishes them.
async fn hold_for_a_while(locks: &Locker, journal: &Journal) -> tokio::task::JoinHandle<()> {
    let (guard, journal) = (hold(locks, "k").await, journal.clone());
    tokio::spawn(async move {
        elapse(SECOND / 20).await;
        journal.write("held");
        guard.release().await.unwrap();
    })
}

#[tokio::test]
async fn a_declared_sync_call_waits_in_spawn_blocking() {
    let (locks, journal) = (locker().await, Journal::default());
    let holder = hold_for_a_while(&locks, &journal).await;
    let (shop, there) = (Shop(locks.clone()), journal.clone());
    let called = spawn_blocking(move || shop.blocking(&there)).await.unwrap();
    holder.await.unwrap();
    assert!(called.is_some());
    assert_eq!(journal.entries(), ["held", "blocking"]);
    assert!(is_free(&locks, "k").await);
}

/// The runtime has one worker, which the holder needs while the call waits on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_waiting_sync_call_lets_the_holder_run() {
    let (locks, journal) = (locker().await, Journal::default());
    for _ in 0..3 {
        let holder = hold_for_a_while(&locks, &journal).await;
        let (shop, there) = (Shop(locks.clone()), journal.clone());
        assert!(tokio::spawn(async move { shop.sync(&there) }).await.unwrap().is_some());
        holder.await.unwrap();
        let holder = hold_for_a_while(&locks, &journal).await;
        let (shop, there) = (Shop(locks.clone()), journal.clone());
        assert!(spawn_blocking(move || shop.sync(&there)).await.unwrap().is_some());
        holder.await.unwrap();
        let holder = hold_for_a_while(&locks, &journal).await;
        assert!(Shop(locks.clone()).sync(&journal).is_some());
        holder.await.unwrap();
    }
    assert_eq!(journal.entries(), ["held", "sync"].repeat(9));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sync_calls_wait_for_a_lock_on_a_server() {
    #[distributed_lock(key = "k", locker = locks, wait, guard = lock)]
    fn call(locks: &Locker, journal: &Journal) -> Result<(), LockError> {
        assert!(lock.is_held());
        journal.write("sync");
        Ok(())
    }
    let server = Server::start();
    let (locks, journal) = (Locker::connect(&server.url()).await.unwrap(), Journal::default());
    let holder = hold_for_a_while(&locks, &journal).await;
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let (locks, journal) = (locks.clone(), journal.clone());
            spawn_blocking(move || call(&locks, &journal))
        })
        .collect();
    call(&locks, &journal).unwrap();
    for called in calls {
        called.await.unwrap().unwrap();
    }
    holder.await.unwrap();
    assert_eq!(journal.entries()[0], "held");
    assert_eq!(journal.entries().len(), 10);
    assert!(is_free(&locks, "k").await);
}

#[test]
fn a_sync_call_outside_of_any_runtime_waits() {
    let (shop, journal) = (Shop(locker_now()), Journal::default());
    for name in ["sync", "blocking"] {
        let guard = now(shop.0.lock("k").acquire()).unwrap();
        std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                if name == "sync" { shop.sync(&journal) } else { shop.blocking(&journal) }
            });
            std::thread::park_timeout(SECOND / 20);
            journal.write("held");
            now(guard.release()).unwrap();
            assert!(call.join().unwrap().is_some());
        });
    }
    assert_eq!(journal.entries(), ["held", "sync", "held", "blocking"]);
    assert!(is_free_now(&shop.0, "k"));
}

#[test]
fn sync_calls_of_many_threads_exclude_each_other() {
    let (shop, journal) = (Shop(locker_now()), Journal::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(shop.sync(&journal).is_some());
                }
            });
        }
    });
    assert_eq!(journal.entries().len(), 160);
    assert!(is_free_now(&shop.0, "k"));
}

#[distributed_lock(key = "k", locker = locks, wait)]
fn must_not_wait_here(locks: &Locker) -> Result<(), LockError> {
    unreachable!("runs although it must not wait here")
}

#[distributed_lock(key = "k", locker = locks, wait, on_busy = skip)]
fn must_not_wait_here_either(locks: &Locker) {
    unreachable!("runs although it must not wait here")
}

/// Refused before anything is asked, whether the lock is free or not, and not as a busy lock.
async fn refuses_to_wait_here(locks: &Locker) {
    events::listen();
    for is_held in [false, true] {
        let guard = if is_held { Some(hold(locks, "k").await) } else { None };
        let error = must_not_wait_here(locks).unwrap_err();
        assert!(error.is_invalid_option(), "{error}");
        assert_eq!(error.key(), Some("disLock:k"));
        let text = error.to_string();
        assert!(text.contains("`blocking`") && text.contains("`spawn_blocking`"), "{text}");
        must_not_wait_here_either(locks);
        let logged = events::take();
        assert!(matches!(&*logged, [event] if event.level == Level::ERROR), "{logged:#?}");
        drop(guard);
    }
    elapse(SECOND / 20).await;
    assert!(is_free(locks, "k").await);
}

#[tokio::test]
async fn a_sync_call_refuses_to_block_a_whole_runtime() {
    let locks = locker().await;
    refuses_to_wait_here(&locks).await;
    // The two cannot be distinguished, so the call must allow it here.
    let error = spawn_blocking(move || must_not_wait_here(&locks)).await.unwrap().unwrap_err();
    assert!(error.is_invalid_option(), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_sync_call_waits_in_a_local_set() {
    let locks = locker().await;
    LocalSet::new().run_until(refuses_to_wait_here(&locks)).await;
}

#[tokio::test]
async fn a_sync_call_without_wait_is_not_affected() {
    #[distributed_lock(key = "k", locker = locks)]
    fn call(locks: &Locker) -> Result<u8, LockError> {
        Ok(7)
    }
    let locks = locker().await;
    assert_eq!(call(&locks).unwrap(), 7);
    let _held = hold(&locks, "k").await;
    assert!(call(&locks).unwrap_err().is_busy());
}

#[distributed_lock(key = "k", locker = locks, wait)]
async fn own(locks: &Locker) -> Result<(), LockError> {
    unreachable!("runs under its caller's lock")
}

#[distributed_lock(key = "k", locker = locks, wait = "1h", fair)]
fn own_boxed(locks: &Locker) -> BoxFuture<'_, Result<(), LockError>> {
    Box::pin(async { unreachable!("runs under its caller's lock") })
}

#[distributed_lock(key = "k", locker = locks, wait)]
fn own_sync(locks: &Locker) -> Result<(), LockError> {
    unreachable!("runs under its caller's lock")
}

#[distributed_lock(key = "k", locker = locks, wait, blocking, on_busy = skip)]
fn own_blocking(locks: &Locker) -> Result<(), LockError> {
    unreachable!("runs under its caller's lock")
}

fn assert_own(outcomes: [Result<(), LockError>; 4]) {
    for outcome in outcomes {
        let error = outcome.unwrap_err();
        assert!(error.is_held_by_caller(), "{error}");
    }
}

#[tokio::test]
async fn a_body_does_not_wait_for_its_own_lock() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn holds(locks: &Locker) -> Option<()> {
        pause().await;
        let outcomes =
            [own(locks).await, own_boxed(locks).await, own_sync(locks), own_blocking(locks)];
        assert_own(outcomes);
        Some(())
    }
    assert!(holds(&locker().await).await.is_some());
}

#[test]
fn no_sync_body_waits_for_its_own_lock() {
    #[distributed_lock(key = "k", locker = locks, wait)]
    fn holds(locks: &Locker) -> Option<()> {
        let outcomes =
            [now(own(locks)), now(own_boxed(locks)), own_sync(locks), own_blocking(locks)];
        assert_own(outcomes);
        Some(())
    }
    let locks = locker_now();
    assert!(holds(&locks).is_some());
    assert!(is_free_now(&locks, "k"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lock_that_was_waited_for_names_its_request() {
    #[distributed_lock(key = "k", locker = locks, wait)]
    async fn call(locks: &Locker) -> Option<String> {
        let holder = locks.inspect("k").await.unwrap()?;
        holder.identity().map(ToOwned::to_owned)
    }
    #[distributed_lock(key = "k", locker = locks, wait)]
    fn call_sync(locks: &Locker) -> Option<String> {
        let holder = now(locks.inspect("k")).unwrap()?;
        holder.identity().map(ToOwned::to_owned)
    }
    let (locks, journal) = (locker().await, Journal::default());
    let _holder = hold_for_a_while(&locks, &journal).await;
    assert_eq!(RequestId::new("a").scope(call(&locks)).await.as_deref(), Some("a"));
    let _holder = hold_for_a_while(&locks, &journal).await;
    assert_eq!(RequestId::new("b").sync_scope(|| call_sync(&locks)).as_deref(), Some("b"));
    let _holder = hold_for_a_while(&locks, &journal).await;
    assert_eq!(call(&locks).await, None);
    assert_eq!(journal.entries(), ["held"; 3]);
}

/// The value in the backend stays as it is while a lock is passed on without asking that.
#[tokio::test(start_paused = true)]
async fn a_handed_off_lock_names_its_turns_first_request() {
    #[distributed_lock(key = "k", locker = locks, wait)]
    async fn call(locks: &Locker) -> Option<String> {
        let holder = locks.inspect("k").await.unwrap()?;
        holder.identity().map(ToOwned::to_owned)
    }
    let (locks, a, b) = (locker().await, RequestId::new("a"), RequestId::new("b"));
    let guard = hold(&locks, "k").await;
    let release = async {
        elapse(SECOND).await;
        guard.release().await.unwrap();
    };
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
    let guard = hold(&locks, "k").await;
    let release = async {
        elapse(SECOND).await;
        guard.release().await.unwrap();
    };
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
        std::thread::park_timeout(Duration::from_millis(1_200));
        assert!(lock.is_held());
        Some(())
    }
    let locks = locker_now();
    let guard = now(locks.lock("k").acquire()).unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| call(&locks));
        std::thread::park_timeout(SECOND / 20);
        now(guard.release()).unwrap();
        assert!(call.join().unwrap().is_some());
    });
}
