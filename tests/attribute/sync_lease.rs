//! The lease of a body that blocks its thread, as every sync one does: the clock is real, and leases
//! are short.

use std::thread;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};
use tokio::runtime::Builder;
use tracing::Level;

use crate::events;
use crate::support::{Journal, ShopError, is_free_now, locker_now, pause};

/// Short beside a test. A renewal may be late by two thirds of it.
const LEASE: Duration = Duration::from_secs(3);
/// Longer than two renewals make a lease last.
const LONGER: Duration = Duration::from_millis(5_200);
/// What shall come, comes before.
const LIMIT: Duration = Duration::from_secs(20);

/// Blocks its thread until another lease has come and gone.
#[distributed_lock(key = "clock", expire = LONGER, on_lost = finish, locker = locks, guard = lock)]
fn longer_than_a_lease(locks: &Locker) -> Result<(), LockError> {
    wait::until(LIMIT, || lock.is_lost());
    Ok(())
}

#[distributed_lock(key = "k", locker = locks)]
fn acquires(locks: &Locker) -> Result<(), LockError> {
    Ok(())
}

/// Asked by another thread, which is another caller.
fn is_taken(locks: &Locker) -> bool {
    let outcome = thread::scope(|scope| scope.spawn(|| acquires(locks)).join().unwrap());
    let Err(error) = outcome else { return false };
    assert!(error.is_busy(), "{error}");
    true
}

#[distributed_lock(key = "k", expire = LEASE, renew, locker = locks, guard = lock)]
fn renewed(locks: &Locker) -> Result<Lease, LockError> {
    longer_than_a_lease(locks)?;
    assert!(lock.is_held(), "{lock:?}");
    assert!(is_taken(locks));
    Ok(lock)
}

fn outlives_its_lease(locks: &Locker) {
    let lease = renewed(locks).unwrap();
    assert!(!lease.is_held() && !lease.is_lost());
    acquires(locks).unwrap();
}

#[test]
fn a_renewed_body_outlives_its_lease_without_runtime() {
    outlives_its_lease(&locker_now());
}

#[tokio::test]
async fn a_renewed_body_outlives_its_lease_on_one_thread() {
    outlives_its_lease(&locker_now());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_body_outlives_its_lease_on_two_threads() {
    tokio::spawn(async { outlives_its_lease(&locker_now()) }).await.unwrap();
}

#[test]
fn a_renewed_body_outlives_its_lease_on_a_server() {
    let server = Server::start();
    // Side by side, so with keys of their own.
    let locker =
        |prefix: &str| Locker::builder().url(server.url()).prefix(prefix).connect_lazy().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| outlives_its_lease(&locker("none:")));
        scope.spawn(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { outlives_its_lease(&locker("current:")) });
        });
        scope.spawn(|| {
            let runtime =
                Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let locks = locker("multi:");
            let call = runtime.spawn(async move { outlives_its_lease(&locks) });
            runtime.block_on(call).unwrap();
        });
    });
}

#[tokio::test]
async fn a_body_that_blocks_its_runtime_is_renewed() {
    #[distributed_lock(key = "k", expire = LEASE, renew, locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Result<(), LockError> {
        pause().await;
        longer_than_a_lease(locks)?;
        assert!(lock.is_held(), "{lock:?}");
        assert!(is_taken(locks));
        Ok(())
    }
    let server = Server::start();
    call(&Locker::connect(&server.url()).await.unwrap()).await.unwrap();
}

/// Goal: no answer is no renewal. Method: the server's process is stopped while the body runs.
#[test]
fn a_renewed_body_whose_server_stops_is_lost() {
    #[distributed_lock(key = "k", expire = LEASE, renew, locker = locks, guard = lock)]
    fn call(locks: &Locker, server: &Server) -> Result<(), LockError> {
        assert!(lock.is_held());
        server.pause();
        wait::until(LIMIT, || lock.is_lost());
        server.resume();
        Ok(())
    }
    let server = Server::start();
    let locks = Locker::builder().url(server.url()).connect_lazy().unwrap();
    let error = call(&locks, &server).unwrap_err();
    assert!(error.is_lost() && error.is_completed(), "{error}");
    acquires(&locks).unwrap();
}

/// Asserts `count` events at error level, and that each names the key.
fn assert_error_events(count: usize) {
    let logged = events::take();
    let errors: Vec<_> = logged.iter().filter(|event| event.level == Level::ERROR).collect();
    assert_eq!(errors.len(), count, "{logged:#?}");
    assert!(errors.iter().all(|error| error.fields.contains("disLock:k")), "{errors:?}");
}

#[test]
fn a_completed_sync_body_reports_its_loss() {
    #[distributed_lock(key = "k", expire = LEASE, locker = locks, guard = lock)]
    fn result(locks: &Locker, journal: &Journal) -> Result<u8, ShopError> {
        wait::until(LIMIT, || lock.is_lost());
        journal.write("done");
        Ok(7)
    }
    #[distributed_lock(key = "k", expire = LEASE, locker = locks, guard = lock, on_busy = 1,
        on_error = |err| if err.is_lost() && err.is_completed() { 2 } else { 3 })]
    fn answered(locks: &Locker, journal: &Journal) -> u8 {
        wait::until(LIMIT, || lock.is_lost());
        journal.write("done");
        7
    }
    let (locks, journal) = (locker_now(), Journal::default());
    let Err(ShopError::Lock(error)) = result(&locks, &journal) else { panic!("not lost") };
    assert!(error.is_lost() && error.is_completed(), "{error}");
    assert_eq!(answered(&locks, &journal), 2);
    assert_eq!(journal.entries(), ["done"; 2]);
}

#[test]
fn a_body_that_may_finish_gives_its_value() {
    #[distributed_lock(key = "k", expire = LEASE, locker = locks, on_lost = finish, guard = lock)]
    fn result(locks: &Locker) -> Result<u8, ShopError> {
        wait::until(LIMIT, || lock.is_lost());
        Err(ShopError::SoldOut)
    }
    #[distributed_lock(key = "k", expire = LEASE, locker = locks, on_lost = finish, guard = lock)]
    fn option(locks: &Locker) -> Option<bool> {
        wait::until(LIMIT, || lock.is_lost());
        Some(lock.is_held())
    }
    #[distributed_lock(key = "k", expire = LEASE, locker = locks, on_lost = finish, guard = lock,
        on_busy = 1, on_error = |_| 2)]
    fn answered(locks: &Locker) -> u8 {
        wait::until(LIMIT, || lock.is_lost());
        7
    }
    let locks = locker_now();
    events::listen();
    assert!(matches!(result(&locks), Err(ShopError::SoldOut)));
    assert_error_events(1);
    assert_eq!(option(&locks), Some(false));
    assert_error_events(1);
    assert_eq!(answered(&locks), 7);
    assert_error_events(1);
}

/// Nothing can stop the body, so it continues without renewal until its last lease ends.
#[test]
fn renewal_ends_at_the_maximum_hold() {
    #[distributed_lock(key = "k", expire = LEASE, renew, max_hold = LEASE * 2, locker = locks,
        guard = lock)]
    fn call(locks: &Locker) -> Result<u8, LockError> {
        longer_than_a_lease(locks)?;
        assert!(lock.is_held(), "{lock:?}");
        wait::until(LIMIT, || lock.is_lost());
        wait::until(LIMIT, || !is_taken(locks));
        Ok(7)
    }
    let error = call(&locker_now()).unwrap_err();
    assert!(error.is_lost() && error.is_completed(), "{error}");
}

#[test]
fn a_sync_body_past_max_hold_gives_its_value() {
    #[distributed_lock(key = "k", expire = 60, renew, max_hold = "50ms", locker = locks,
        guard = lock)]
    fn call(locks: &Locker) -> Result<u8, LockError> {
        wait::until(LIMIT, || !lock.is_held());
        assert!(!lock.is_lost() && is_taken(locks));
        Ok(7)
    }
    let locks = locker_now();
    events::listen();
    assert_eq!(call(&locks).unwrap(), 7);
    assert_error_events(0);
    assert!(!is_taken(&locks));
}

#[test]
fn renewal_ends_with_a_body_that_panics() {
    #[distributed_lock(key = "k", expire = LEASE, renew, locker = locks)]
    fn call(locks: &Locker) {
        panic!("on purpose")
    }
    let locks = locker_now();
    let ended = thread::scope(|scope| scope.spawn(|| call(&locks)).join());
    assert!(ended.is_err());
    wait::until(LIMIT, || is_free_now(&locks, "k"));
}

#[test]
fn a_second_call_within_the_shortest_hold_is_busy() {
    #[distributed_lock(key = "k", min_hold = "300ms", locker = locks)]
    fn result(locks: &Locker) -> Result<u8, LockError> {
        Ok(7)
    }
    #[distributed_lock(key = "long", min_hold = 10, locker = locks, on_busy = 1, on_error = |_| 2)]
    fn answered(locks: &Locker) -> u8 {
        7
    }
    let locks = locker_now();
    assert_eq!((answered(&locks), answered(&locks)), (7, 1));
    assert_eq!(result(&locks).unwrap(), 7);
    wait::until(LIMIT, || match result(&locks) {
        Ok(value) => value == 7,
        Err(error) => {
            assert!(error.is_busy(), "{error}");
            false
        }
    });
}

#[test]
fn a_duration_is_evaluated_once_before_the_body() {
    #[distributed_lock(
        key = "k",
        locker = locks,
        expire = noted(&journal, "expire", 10),
        renew,
        max_hold = noted(&journal, "max_hold", 60),
        min_hold = noted(&journal, "min_hold", 1)
    )]
    fn call(locks: &Locker, journal: Journal) -> Option<()> {
        journal.write("body");
        Some(())
    }
    fn noted(journal: &Journal, option: &str, seconds: u64) -> Duration {
        journal.write(option);
        Duration::from_secs(seconds)
    }
    let (locks, journal) = (locker_now(), Journal::default());
    assert!(call(&locks, journal.clone()).is_some());
    assert_eq!(journal.entries(), ["expire", "max_hold", "min_hold", "body"]);
}
