//! A holder that an operator asks to stop: every kind of function and of guard.

use std::future::{Future, pending};
use std::time::Duration;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{Lease, LockError, LockErrorKind, Locker, OnLost, distributed_lock};
use tracing::Level;

use crate::by_return_type::by_return_type;
use crate::events;
use crate::support::{Journal, elapse, is_free, pause};

const REASON: &str = "migration 42";

/// Asks once the body runs.
async fn asked<T>(locks: &TestLocks, call: impl Future<Output = T>) -> T {
    let ask = async {
        pause().await;
        locks.revoke("k", REASON);
    };
    tokio::join!(call, ask).0
}

#[track_caller]
fn assert_revoked(error: &LockError) {
    assert!(error.is_revoked() && !error.is_lost() && !error.is_max_hold_reached(), "{error}");
    assert_eq!((error.kind(), error.key()), (LockErrorKind::Revoked, Some("disLock:k")));
    let message = "lock `disLock:k`: an operator asked the holder to stop: migration 42";
    assert_eq!(error.to_string(), message);
    assert!(!error.is_body_finished() && !error.is_taken());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_body_is_dropped_under_its_lock() {
    #[distributed_lock(key = "k", renew)]
    async fn call(locks: &TestLocks, journal: &Journal) {
        let _transaction = journal.drops("transaction").looking_at(locks.locker(), "k");
        pending().await
    }
    let (locks, journal) = (TestLocks::new(), Journal::default());
    events::listen();
    asked(&locks, locks.scope(call(&locks, &journal))).await;
    assert_eq!(journal.entries(), ["transaction when held"]);
    assert_eq!(events::count_errors(&["disLock:k", REASON]), 1);
}

/// An operator asks each holder as soon as there is one.
#[tokio::test(start_paused = true)]
async fn a_revoked_lock_is_an_error_by_return_type() {
    let locks = TestLocks::new();
    let ask = async {
        loop {
            if locks.holder("k").is_some() {
                locks.revoke("k", REASON);
            }
            pause().await;
        }
    };
    let calls = async {
        let locks = locks.locker();
        assert_revoked(&by_return_type!(async locks, [] pending::<()>().await).error());
        assert_revoked(
            &by_return_type!(async locks, [renew, on_lost = finish] pending::<()>().await).error(),
        );
    };
    tokio::select! {
        () = calls => {}
        () = ask => unreachable!("an operator asks for ever"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_lock_is_the_next_waiters() {
    let locks = TestLocks::new();
    let request = || locks.locker().lock("k").renew().on_lost(OnLost::Finish);
    let first = async { request().run(pending::<()>()).await };
    let second = async {
        pause().await;
        request().run(async { 2 }).await
    };
    let ask = async {
        while locks.waiting("k") == 0 {
            pause().await;
        }
        locks.revoke("k", REASON);
    };
    let (first, second, ()) = tokio::join!(first, second, ask);
    assert_revoked(&first.unwrap_err());
    assert_eq!(second.unwrap(), 2);
}

/// Goal: the next call of the same process is not taken for the hold that was asked.
/// Method: two calls wait behind another holder, so the second one would have the turn of the first.
#[tokio::test(start_paused = true)]
async fn a_revoked_hold_is_not_passed_on_in_its_process() {
    for is_asked in [false, true] {
        let locks = TestLocks::new();
        let other = locks.hold("k");
        let acquire = || tokio::spawn(locks.locker().lock("k").acquire());
        let (first, second) = (acquire(), acquire());
        while locks.waiting("k") < 2 {
            pause().await;
        }
        drop(other);
        let first = first.await.unwrap().unwrap();
        let id = locks.holder("k").unwrap().id();
        if is_asked {
            locks.revoke("k", REASON);
        }
        first.release().await.unwrap();
        let second = second.await.unwrap().unwrap();
        assert_eq!(locks.holder("k").unwrap().id() == id, !is_asked);
        assert!(second.lease().is_held());
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_guard_is_not_held_and_not_lost() {
    let locks = TestLocks::new();
    let guard = locks.locker().lock("k").renew().acquire().await.unwrap();
    let lease = guard.lease();
    let ((), error) = tokio::join!(async { locks.revoke("k", REASON) }, lease.lost());
    assert_revoked(&error);
    // A holder that was asked already is not asked for another reason.
    locks.revoke("k", "again");
    assert_revoked(&guard.lease().lost().await);
    assert!(
        !guard.lease().is_held() && !guard.lease().is_lost() && guard.lease().remaining().is_zero()
    );
    assert_revoked(&guard.lease().extend(Duration::from_secs(60)).await.unwrap_err());
    // To ask takes nothing away: it is renewed for as long as the holder needs.
    elapse(Duration::from_secs(60)).await;
    assert!(!guard.lease().is_lost() && !is_free(locks.locker(), "k"));
    guard.release().await.unwrap();
    assert!(is_free(locks.locker(), "k"));
}

#[test]
fn a_revoked_sync_body_sees_it_and_gives_its_value() {
    #[distributed_lock(key = "k", renew, guard = lock)]
    fn body(ask: impl FnOnce(&Lease) -> u8) -> Result<u8, LockError> {
        Ok(ask(&lock))
    }
    let locks = TestLocks::new();
    let ask = |lease: &Lease| {
        assert!(lease.is_held());
        locks.revoke("k", REASON);
        assert!(!lease.is_held() && !lease.is_lost());
        7
    };
    assert_eq!(locks.sync_scope(|| body(ask)).unwrap(), 7);
    assert!(locks.holder("k").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_revoked_hold_says_so_in_its_events() {
    let locks = TestLocks::new();
    events::listen();
    let run = locks.locker().lock("k").renew().run(pending::<()>());
    assert_revoked(&asked(&locks, run).await.unwrap_err());
    let logged = events::take_all();
    let of = |name| {
        let named: Vec<_> = logged.iter().filter(|event| event.name == name).collect();
        assert_eq!(named.len(), 1, "{name} in {logged:#?}");
        (named[0].level, named[0].fields.clone())
    };
    let (level, asked) = of("revoked");
    assert!(level == Level::WARN && asked.contains(REASON) && asked.contains("disLock:k"));
    assert!(of("hold").1.contains(r#"outcome="revoked""#), "{logged:#?}");
    assert!(of("release").1.contains(r#"outcome="released""#), "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_one_line_that_is_not_too_long() {
    let locks = TestLocks::new();
    let guard = locks.locker().lock("k").acquire().await.unwrap();
    locks.revoke("k", format!("\u{1b}[31m\n{}", "x".repeat(1_000)));
    let message = guard.lease().lost().await.to_string();
    assert!(message.contains(r"\u{1b}[31m\nxxx") && message.ends_with('…'), "{message}");
    assert!(message.len() < 300 && !message.contains(char::is_control));
}

#[test]
#[should_panic(expected = "no call of this locker has the lock `disLock:k`")]
fn another_holder_cannot_be_asked() {
    let locks = TestLocks::new();
    let _other = locks.hold("k");
    locks.revoke("k", REASON);
}
