//! Runs that are not repeated once they ended well.

use std::future::pending;
use std::panic::resume_unwind;
use std::time::{Duration, SystemTime};

use humantime::format_rfc3339_millis as iso;
use lockable_runtime::admin::{Forced, Revoked};
use lockable_runtime::{HolderKind, LockError, LockErrorKind, LockGuard, Locker};
use lockable_tests::wait;
use tokio::time::Instant;

use crate::body::caught;
use crate::fixture::{AMPLE, Harm, KEY, LIMIT, NAME, Store, drained};

every_full_backend! { one_thread: [
    a_run_that_ended_well_is_done,
    what_is_done_has_an_end,
    a_run_that_did_not_end_well_is_repeated,
    a_run_is_done_only_under_its_lease,
    calls_that_wait_for_a_run_hear_that_it_is_done,
    what_is_done_is_not_what_a_minimum_hold_keeps,
    an_operator_has_a_run_repeated,
    a_run_that_is_revoked_is_not_done,
    a_lock_is_kept_only_where_that_can_be_seen,
] }

async fn a_run_that_ended_well_is_done(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let began = SystemTime::now();
    run(&locker).await.keep(AMPLE).await.unwrap();
    let ended = SystemTime::now();
    let life = store.life(NAME).unwrap();
    assert!(life > AMPLE / 2 && life <= AMPLE, "{life:?}");
    for locker in [&locker, &other] {
        let request = || locker.lock(KEY).once();
        for request in [request(), request().wait(Duration::ZERO), request().wait(LIMIT)] {
            let error = is_done(request.acquire().await);
            assert!(error.to_string().contains(NAME), "{error}");
            has_times(&error, began, ended);
        }
        assert!(is_done(request().run(async {}).await).is_busy());
        assert!(request().try_acquire().await.unwrap_err().is_busy());
        assert!(request().try_run(async {}).await.unwrap_err().is_busy());
        // A call of another kind finds another holder.
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
        let waiting = locker.lock(KEY).wait(store.short()).acquire().await;
        assert!(waiting.unwrap_err().is_wait_limit_reached());
    }
    let holder = other.inspect(KEY).await.unwrap().unwrap();
    assert_eq!(holder.kind(), HolderKind::Done);
    assert!(holder.remaining().unwrap() > AMPLE / 4);
    drained().await;
    store.delete(NAME);
}

async fn what_is_done_has_an_end(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let start = Instant::now();
    let guard = run(&locker).await;
    store.elapse(store.short() / 2).await;
    guard.keep(store.short()).await.unwrap();
    let next = loop {
        match other.lock(KEY).once().acquire().await {
            Ok(guard) => break guard,
            Err(error) => assert!(error.is_done(), "{error}"),
        }
        store.elapse(store.short() / 50).await;
    };
    let passed = start.elapsed();
    assert!(passed >= store.short(), "{passed:?}");
    assert!(passed < 2 * store.short() || !store.is_exact(), "{passed:?}");
    // It was over before this one ended, so it is not left taken for any time.
    store.elapse(store.short()).await;
    next.keep(store.short()).await.unwrap();
    assert!(!store.has(NAME));
}

/// One lock for each way in which a run ends.
async fn a_run_that_did_not_end_well_is_repeated(store: &Store) {
    let locker = store.locker().await;
    let request = |key: &str| locker.lock(key).once();
    request("released").acquire().await.unwrap().release().await.unwrap();
    drop(request("dropped").acquire().await.unwrap());
    request("completed").run(async {}).await.unwrap();
    let panicking = async { resume_unwind(Box::new(())) };
    assert!(caught(request("panicked").run::<_>(panicking)).await.is_err());
    drained().await;
    for key in ["released", "dropped", "completed", "panicked"] {
        request(key).acquire().await.unwrap().release().await.unwrap();
    }
}

async fn a_run_is_done_only_under_its_lease(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for harm in [Harm::Deleted, Harm::Flushed, Harm::Taken] {
        let guard = run(&locker).await;
        harm.befall(store);
        assert!(guard.keep(AMPLE).await.unwrap_err().is_lost());
        if let Harm::Taken = harm {
            store.delete(NAME);
        }
        run(&other).await.release().await.unwrap();
    }
    let request = locker.lock(KEY).once().renew().max_hold(store.short());
    let guard = request.acquire().await.unwrap();
    assert!(guard.lease().lost().await.is_max_hold_reached());
    guard.keep(AMPLE).await.unwrap();
    run(&other).await.release().await.unwrap();
}

/// Within a second of its end.
async fn calls_that_wait_for_a_run_hear_that_it_is_done(store: &Store) {
    let holder = store.locker().await;
    let guard = run(&holder).await;
    let mut waiting = vec![tokio::spawn(holder.lock(KEY).once().acquire())];
    for _ in 0..9 {
        waiting.push(tokio::spawn(store.locker().await.lock(KEY).once().acquire()));
    }
    let plain = store.locker().await;
    let plain = tokio::spawn(plain.lock(KEY).acquire());
    let admin = holder.admin();
    let all = waiting.len() + 1;
    wait::until_async(wait::HANG, async || admin.queue(KEY).await.unwrap().len() == all).await;
    guard.keep(AMPLE).await.unwrap();
    let end = Instant::now();
    for call in waiting {
        is_done(wait::ends(call).await.unwrap());
    }
    let passed = end.elapsed();
    assert!(passed <= Duration::from_secs(1) || !store.is_exact(), "{passed:?}");
    assert!(!plain.is_finished());
    drained().await;
    store.delete(NAME);
    plain.await.unwrap().unwrap().release().await.unwrap();
}

/// Also where others wait, which changes the mark.
async fn what_is_done_is_not_what_a_minimum_hold_keeps(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let request = locker.lock(KEY).min_hold(AMPLE);
    request.acquire().await.unwrap().release().await.unwrap();
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let error = other.lock(KEY).once().wait(wait).acquire().await.unwrap_err();
        assert!(error.is_wait_limit_reached() && !error.is_done(), "{error}");
    }
    let both = locker.lock(KEY).once().min_hold(store.short()).acquire().await.unwrap_err();
    assert_eq!(both.kind(), LockErrorKind::InvalidOption);
    drained().await;
    store.delete(NAME);
}

async fn an_operator_has_a_run_repeated(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    run(&locker).await.keep(AMPLE).await.unwrap();
    let admin = other.admin();
    let held = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(held.holder().kind(), HolderKind::Done);
    assert_eq!(admin.force_release(&held, "once more").await.unwrap(), Forced::Released);
    // A lock that is taken away is never done, whatever its holder does then.
    let guard = run(&locker).await;
    let held = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(admin.force_release(&held, "stuck").await.unwrap(), Forced::Released);
    assert!(guard.keep(AMPLE).await.unwrap_err().is_lost());
    run(&other).await.release().await.unwrap();
}

/// Also where its body has ended well before it is stopped, as one under a guard.
async fn a_run_that_is_revoked_is_not_done(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let revoke = async || {
        let admin = other.admin();
        store.eventually(|| store.has(NAME)).await;
        let held = admin.holder(KEY).await.unwrap().unwrap();
        admin.revoke(&held, "not today", LIMIT).await.unwrap()
    };
    let request = locker.lock(KEY).once().renew();
    let (stopped, revoked) = tokio::join!(request.run(pending::<()>()), revoke());
    assert!(stopped.unwrap_err().is_revoked() && matches!(revoked, Revoked::Released { .. }));
    let guard = locker.lock(KEY).once().renew().acquire().await.unwrap();
    let under_guard = async {
        assert!(guard.lease().lost().await.is_revoked());
        guard.keep(AMPLE).await.unwrap();
    };
    let ((), revoked) = tokio::join!(under_guard, revoke());
    assert!(matches!(revoked, Revoked::Released { .. }), "{revoked:?}");
    run(&other).await.release().await.unwrap();
}

async fn a_lock_is_kept_only_where_that_can_be_seen(store: &Store) {
    let locker = store.locker().await;
    for (request, period) in [
        (locker.lock(KEY), AMPLE),
        (locker.lock(KEY).once(), Duration::from_millis(9)),
        (locker.lock(KEY).once(), Duration::MAX),
    ] {
        let error = request.acquire().await.unwrap().keep(period).await.unwrap_err();
        assert_eq!((error.kind(), error.key()), (LockErrorKind::InvalidOption, Some(NAME)));
        assert!(error.to_string().contains("`keep`"), "{error}");
        assert!(!store.has(NAME));
    }
}

async fn run(locker: &Locker) -> LockGuard {
    locker.lock(KEY).once().acquire().await.unwrap()
}

fn is_done<T>(outcome: Result<T, LockError>) -> LockError {
    let Err(error) = outcome else { panic!("the run is not done") };
    assert!(error.is_done() && error.is_busy(), "{error}");
    error
}

/// The start of the run is between these two moments, and it counts for the rest of its period.
fn has_times(error: &LockError, first: SystemTime, last: SystemTime) {
    let text = error.to_string();
    let (_, times) = text.split_once(" that began at ").unwrap_or_else(|| panic!("{text}"));
    let (began, until) = times.split_once(" ended well, and no other one runs until ").unwrap();
    let at = |moment| iso(moment).to_string();
    assert!(at(first).as_str() <= began && began <= at(last).as_str(), "{text}");
    assert!(at(first + AMPLE / 4).as_str() < until, "{text}");
    assert!(until <= at(SystemTime::now() + AMPLE).as_str(), "{text}");
}
