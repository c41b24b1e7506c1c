//! Locks that an operator keeps taken, and lockers that acquire nothing new.

use std::time::Duration;

use lockable_runtime::admin::{Forced, Revoked};
use lockable_runtime::{Holder, HolderKind, LockError, LockErrorKind, Locker};
use lockable_tests::sections::renewed;
use lockable_tests::wait;

use crate::cancellation::at_every_poll;
use crate::fixture::{AMPLE, KEY, LIMIT, Store, assert_quiet, drained, hold, hold_renewed};

every_full_backend! { one_thread: [
    a_paused_lock_says_why_to_those_who_find_it_busy,
    a_set_is_paused_as_a_whole,
    all_permits_are_paused,
    a_pause_given_up_at_any_poll_leaves_nothing,
    a_pause_is_at_most_a_day,
    a_drained_locker_acquires_nothing_new,
] and_sentinel: [
    a_pause_leaves_nothing_in_its_process,
    a_pause_ends_by_itself,
    a_pause_is_no_run_of_once,
    a_resumed_lock_goes_to_those_who_wait,
    a_pause_in_the_place_of_a_hold_lets_no_one_in,
    a_call_that_waits_ends_when_its_locker_is_drained,
] }

const REASON: &str = "deploy 42";

async fn pause(locker: &Locker) {
    hold(locker).await.into_pause(AMPLE, REASON).await.unwrap();
}

async fn holder(locker: &Locker) -> Option<Holder> {
    locker.inspect(KEY).await.unwrap()
}

async fn resume(locker: &Locker) {
    let admin = locker.admin();
    let held = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(held.holder().kind(), HolderKind::Paused);
    assert_eq!(admin.force_release(&held, "").await.unwrap(), Forced::Released);
}

fn says_why(error: &LockError) -> bool {
    let text = error.to_string();
    error.is_busy() && text.contains("the lock is paused until 2") && text.ends_with(REASON)
}

async fn a_paused_lock_says_why_to_those_who_find_it_busy(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    pause(&locker).await;
    for locker in [&locker, &other] {
        assert!(locker.lock(KEY).try_acquire().await.unwrap_err().is_busy());
        let ends_after = async |limit| {
            let limit = Duration::from_millis(limit);
            let error = locker.lock(KEY).wait(limit).acquire().await.unwrap_err();
            assert!(error.is_wait_limit_reached(), "{error}");
            error
        };
        let error = ends_after(0).await;
        assert!(says_why(&error), "{error}");
        // A place in the queue may be answered later than that.
        wait::until_async(wait::HANG, async || says_why(&ends_after(100).await)).await;
    }
    resume(&other).await;
    hold(&other).await.release().await.unwrap();
    assert_quiet(store).await;
}

async fn a_pause_leaves_nothing_in_its_process(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold_renewed(store, &locker).await;
    let lease = guard.lease().clone();
    guard.into_pause(AMPLE, REASON).await.unwrap();
    assert!(!lease.is_held() && !lease.is_lost());
    drained().await;
    let seen = other.admin().holder(KEY).await.unwrap().unwrap();
    let holder = seen.holder();
    assert_eq!((holder.kind(), holder.process()), (HolderKind::Paused, None));
    assert_eq!((holder.pause_reason(), holder.request_id()), (Some(REASON), None));
    assert!(holder.held_since().is_some() && holder.remaining().unwrap() > store.lease());
    // No one is at work who could be asked.
    let admin = other.admin();
    let asked = admin.revoke(&seen, "x", Duration::ZERO).await.unwrap();
    assert!(matches!(asked, Revoked::NotListening { .. }), "{asked:?}");
    resume(&other).await;
    assert_eq!(store.locks(), [""; 0]);
}

async fn a_pause_ends_by_itself(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    hold(&locker).await.into_pause(store.short(), REASON).await.unwrap();
    let waiting = tokio::spawn(other.lock(KEY).acquire());
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

async fn a_pause_is_no_run_of_once(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let once = |locker: &Locker| locker.lock(KEY).once();
    once(&locker).acquire().await.unwrap().into_pause(AMPLE, REASON).await.unwrap();
    let error = once(&other).wait(Duration::ZERO).acquire().await.unwrap_err();
    assert!(says_why(&error) && !error.is_done(), "{error}");
    let waiting = tokio::spawn(once(&other).wait(LIMIT).acquire());
    let admin = locker.admin();
    wait::until_async(wait::HANG, async || !admin.queue(KEY).await.unwrap().is_empty()).await;
    resume(&locker).await;
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

async fn a_resumed_lock_goes_to_those_who_wait(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    pause(&locker).await;
    let waiters =
        [&locker, &other].map(|locker| tokio::spawn(locker.lock(KEY).renew().run(async {})));
    let admin = other.admin();
    wait::until_async(wait::HANG, async || admin.queue(KEY).await.unwrap().len() == 2).await;
    // Longer than until those who wait ask again.
    store.elapse(Duration::from_secs(1)).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    resume(&other).await;
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
}

async fn a_pause_in_the_place_of_a_hold_lets_no_one_in(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold_renewed(store, &locker).await;
    let token = guard.lease().fencing_token();
    let admin = other.admin();
    let waiting = tokio::spawn(other.lock(KEY).acquire());
    wait::until_async(wait::HANG, async || !admin.queue(KEY).await.unwrap().is_empty()).await;
    let held = admin.holder(KEY).await.unwrap().unwrap();
    assert_eq!(admin.force_pause(&held, AMPLE, REASON).await.unwrap(), Forced::Released);
    assert!(guard.lease().lost().await.is_lost());
    // Neither the old holder nor its release is heard any more.
    assert!(guard.release().await.is_err());
    store.elapse(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished());
    assert_eq!(holder(&locker).await.unwrap().pause_reason(), Some(REASON));
    assert_eq!(admin.force_pause(&held, AMPLE, "again").await.unwrap(), Forced::Changed);
    // One that was released, and is kept by its `min_hold`, has no holder to wait for, and may be paused too.
    resume(&other).await;
    let next = waiting.await.unwrap().unwrap();
    assert!(next.lease().fencing_token() > token);
    next.release().await.unwrap();
    let guard = locker.lock(KEY).min_hold(AMPLE).acquire().await.unwrap();
    let held = admin.holder(KEY).await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert_eq!(admin.force_pause(&held, AMPLE, REASON).await.unwrap(), Forced::Released);
    assert_eq!(holder(&locker).await.unwrap().pause_reason(), Some(REASON));
    resume(&locker).await;
}

async fn a_set_is_paused_as_a_whole(store: &Store) {
    let locker = store.locker().await;
    let keys = ["a", "b"];
    let set = async || locker.lock_all(keys).acquire().await.unwrap();
    set().await.into_pauses(AMPLE, REASON).await.unwrap();
    for key in keys {
        let holder = locker.inspect(key).await.unwrap().unwrap();
        assert_eq!(holder.pause_reason(), Some(REASON));
        let admin = locker.admin();
        let held = admin.holder(key).await.unwrap().unwrap();
        assert_eq!(admin.force_release(&held, "").await.unwrap(), Forced::Released);
    }
    // One that is lost already leaves the other free.
    let locks = set().await;
    store.delete("disLock:b");
    assert!(locks.into_pauses(AMPLE, REASON).await.unwrap_err().is_lost());
    drained().await;
    assert!(locker.inspect("a").await.unwrap().is_none());
}

async fn all_permits_are_paused(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let all = locker.lock(KEY).all_permits(3).acquire().await.unwrap();
    all.into_pauses(AMPLE, REASON).await.unwrap();
    drained().await;
    let permit = || other.lock(KEY).permits(3);
    assert!(permit().try_acquire().await.unwrap_err().is_busy());
    for limit in [Duration::ZERO, store.short()] {
        let ends = async || permit().wait(limit).acquire().await.unwrap_err();
        // A place in the queue may be answered later than that.
        wait::until_async(wait::HANG, async || says_why(&ends().await)).await;
    }
    let admin = other.admin();
    for number in 1..=3 {
        let permit = format!("{{{KEY}}}#{number}");
        let held = admin.holder(&permit).await.unwrap().unwrap();
        assert_eq!(held.holder().pause_reason(), Some(REASON));
        assert_eq!(admin.force_release(&held, "").await.unwrap(), Forced::Released);
    }
    permit().try_acquire().await.unwrap().release().await.unwrap();
}

async fn a_pause_given_up_at_any_poll_leaves_nothing(store: &Store) {
    let locker = store.locker().await;
    let start = async || hold(&locker).await.into_pause(AMPLE, REASON);
    let check = async |is_paused| {
        if is_paused {
            resume(&locker).await;
        }
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    };
    at_every_poll(start, check).await;
}

async fn a_pause_is_at_most_a_day(store: &Store) {
    let locker = store.locker().await;
    let day = Duration::from_secs(86_400);
    for length in [Duration::ZERO, 2 * day] {
        let error = hold(&locker).await.into_pause(length, REASON).await.unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::InvalidOption, "{error}");
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    }
    hold(&locker).await.into_pause(day, REASON).await.unwrap();
    resume(&locker).await;
}

async fn a_drained_locker_acquires_nothing_new(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold(&locker).await;
    let ticket = other.lock("b").acquire().await.unwrap().into_ticket(AMPLE).await.unwrap();
    let clone = locker.clone();
    clone.drain();
    clone.drain();
    let requests = store.requests();
    let says = |error: LockError| {
        assert!(error.is_unavailable() && error.to_string().contains("Locker::drain"), "{error}");
    };
    says(locker.lock("a").acquire().await.unwrap_err());
    says(locker.lock("a").try_acquire().await.unwrap_err());
    says(locker.lock("a").permits(2).acquire().await.unwrap_err());
    says(locker.lock("a").all_permits(2).try_acquire().await.unwrap_err());
    says(locker.lock_all(["a", "c"]).acquire().await.unwrap_err());
    says(locker.lock("a").run(async {}).await.unwrap_err());
    says(locker.redeem(ticket.clone()).acquire().await.unwrap_err());
    assert_eq!(store.requests(), requests);
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    other.redeem(ticket).acquire().await.unwrap().release().await.unwrap();
    hold(&other).await.release().await.unwrap();
}

async fn a_call_that_waits_ends_when_its_locker_is_drained(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let (guard, permit) =
        (hold(&other).await, locker.lock("p").permits(2).acquire().await.unwrap());
    let kept = locker.lock("p").permits(2).expire(store.lease()).renew().acquire().await.unwrap();
    let waiting = [
        tokio::spawn(locker.lock(KEY).acquire()),
        tokio::spawn(locker.lock(KEY).wait(LIMIT).acquire()),
        // In the lane of its process.
        tokio::spawn(locker.lock("p").permits(2).acquire()),
    ];
    let set = tokio::spawn(locker.lock_all(["free", KEY]).acquire());
    let admin = other.admin();
    wait::until_async(wait::HANG, async || {
        let is_queued = !admin.queue(KEY).await.unwrap().is_empty();
        is_queued && admin.holder("free").await.unwrap().is_some()
    })
    .await;
    locker.drain();
    for call in waiting {
        assert!(call.await.unwrap().unwrap_err().is_unavailable());
    }
    assert!(set.await.unwrap().unwrap_err().is_unavailable());
    wait::until_async(wait::HANG, async || admin.queue(KEY).await.unwrap().is_empty()).await;
    // What runs ends as it would.
    renewed(&kept).await;
    assert!([&guard, &permit, &kept].iter().all(|guard| guard.lease().is_held()));
    for guard in [guard, permit, kept] {
        guard.release().await.unwrap();
    }
    assert_quiet(store).await;
}
