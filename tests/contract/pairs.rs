//! Options that meet: each works for a lock, a permit, all permits, several locks and a redeemed lock alike.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::{LockErrorKind, LockRequest, Locker, OnLost, distributed_lock};
use tokio::time::Instant;

use crate::fixture::{AMPLE, KEY, Store, drained};

every_full_backend! { one_thread: [
    every_kind_of_call_has_its_minimum_hold,
    every_kind_of_call_has_its_maximum_hold,
    an_extension_lasts_for_every_lock_of_a_call,
    a_run_that_ends_in_another_process_is_not_done,
    all_permits_are_tickets_of_one_each,
    a_leader_that_resigns_leaves_its_minimum_hold,
] }

every_claim! { memory_alone: Memory, one_thread, [
    every_kind_of_body_may_finish,
    a_body_that_finished_after_its_loss_is_not_done,
    a_maximum_hold_counts_from_the_end_of_the_wait,
] }

/// Makes the claim about a request of each kind, and the names of its locks.
macro_rules! each_kind {
    ($store:expr, |$request:ident, $names:ident| $claim:block) => {{
        let locker = $store.locker().await;
        let ticket = locker.lock("a").acquire().await.unwrap().into_ticket(AMPLE).await.unwrap();
        each_kind!(@ $store, $request: locker.redeem(ticket), $names: ["disLock:a"], $claim);
        each_kind!(@ $store, $request: locker.lock("a"), $names: ["disLock:a"], $claim);
        let permit = locker.lock("a").permits(2);
        each_kind!(@ $store, $request: permit, $names: ["disLock:{a}#1"], $claim);
        let (all, names) = (locker.lock("a").all_permits(2), ["disLock:{a}#1", "disLock:{a}#2"]);
        each_kind!(@ $store, $request: all, $names: names, $claim);
        let set = locker.lock_all(["a", "b"]);
        each_kind!(@ $store, $request: set, $names: ["disLock:a", "disLock:b"], $claim);
    }};
    (@ $store:expr, $request:ident: $made:expr, $names:ident: $locks:expr, $claim:block) => {{
        let ($request, $names) = ($made, $locks);
        $claim
        drained().await;
        $store.lose_all_data();
    }};
}

/// The locks that are still taken for long.
fn taken(store: &Store) -> Vec<String> {
    let mut locks = store.locks();
    locks.retain(|name| store.life(name).is_some_and(|life| life > AMPLE / 2));
    locks.sort_unstable();
    locks
}

async fn every_kind_of_call_has_its_minimum_hold(store: &Store) {
    each_kind!(store, |request, names| {
        request.min_hold(AMPLE).run(async {}).await.unwrap();
        drained().await;
        assert_eq!(taken(store), names);
    });
}

/// Also with a minimum hold beside it.
async fn every_kind_of_call_has_its_maximum_hold(store: &Store) {
    each_kind!(store, |request, _names| {
        let request = request.renew().max_hold(store.short());
        let error = request.run(pending::<()>()).await.unwrap_err();
        assert!(error.is_max_hold_reached(), "{error}");
        drained().await;
        assert_eq!(store.locks(), [""; 0]);
    });
    each_kind!(store, |request, names| {
        let request = request.renew().max_hold(store.short()).min_hold(AMPLE);
        let error = request.run(pending::<()>()).await.unwrap_err();
        assert!(error.is_max_hold_reached(), "{error}");
        drained().await;
        assert_eq!(taken(store), names);
    });
}

async fn every_kind_of_body_may_finish(store: &Store) {
    let body = || async {
        store.elapse(2 * store.short()).await;
        7
    };
    each_kind!(store, |request, _names| {
        let request = request.expire(store.short()).on_lost(OnLost::Finish);
        assert_eq!(request.run(body()).await.unwrap(), 7);
    });
    each_kind!(store, |request, _names| {
        let error = request.expire(store.short()).run(body()).await.unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
    });
}

async fn an_extension_lasts_for_every_lock_of_a_call(store: &Store) {
    let locker = store.locker().await;
    let permit = locker.lock("a").permits(2).acquire().await.unwrap();
    permit.lease().extend(2 * AMPLE).await.unwrap();
    let all = locker.lock("b").all_permits(2).acquire().await.unwrap();
    all.leases().extend(2 * AMPLE).await.unwrap();
    let ticket = locker.lock("c").acquire().await.unwrap().into_ticket(AMPLE).await.unwrap();
    let redeemed = locker.redeem(ticket).acquire().await.unwrap();
    redeemed.lease().extend(2 * AMPLE).await.unwrap();
    for name in ["{a}#1", "{b}#1", "{b}#2", "c"] {
        let life = store.life(&format!("disLock:{name}")).unwrap();
        assert!(life > 3 * AMPLE / 2, "{name} lives for {life:?}");
    }
    permit.release().await.unwrap();
    all.release().await.unwrap();
    redeemed.release().await.unwrap();
}

async fn a_run_that_ends_in_another_process_is_not_done(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let once = || locker.lock(KEY).once().acquire();
    let ticket = once().await.unwrap().into_ticket(AMPLE).await.unwrap();
    let redeemed = other.redeem(ticket).acquire().await.unwrap();
    let error = redeemed.keep(AMPLE).await.unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::InvalidOption, "{error}");
    once().await.unwrap().release().await.unwrap();
}

async fn all_permits_are_tickets_of_one_each(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let all = locker.lock("a").all_permits(2).acquire().await.unwrap();
    let tickets = all.into_tickets(AMPLE).await.unwrap();
    let names: Vec<_> = tickets.iter().map(|ticket| ticket.key().as_str().to_owned()).collect();
    assert_eq!(names, ["disLock:{a}#1", "disLock:{a}#2"]);
    assert!(locker.lock("a").permits(2).try_acquire().await.unwrap_err().is_busy());
    for ticket in tickets {
        drop(other.redeem(ticket).acquire().await.unwrap());
        drained().await;
        let next = locker.lock("a").permits(2).try_acquire().await.unwrap();
        next.release().await.unwrap();
    }
}

async fn a_body_that_finished_after_its_loss_is_not_done(store: &Store) {
    #[distributed_lock(key = "k", locker = locks, once = "1h", expire = expire, on_lost = finish)]
    async fn call(locks: &Locker, expire: Duration, store: &Store) -> Option<u8> {
        store.elapse(2 * expire).await;
        Some(7)
    }
    let locker = store.locker().await;
    for _ in 0..2 {
        assert_eq!(call(&locker, store.short(), store).await, Some(7));
    }
}

async fn a_leader_that_resigns_leaves_its_minimum_hold(store: &Store) {
    let locker = store.locker().await;
    locker.lock("a").min_hold(AMPLE).lead(|_| async {}).await.unwrap();
    assert_eq!(taken(store), ["disLock:a"]);
    store.lose_all_data();
}

/// Method: the holders are there until the ends of their leases.
async fn a_maximum_hold_counts_from_the_end_of_the_wait(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let (lease, most) = (3 * store.short(), store.short());
    let plain: fn(&Locker) -> LockRequest = |locker| locker.lock("a");
    let permit: fn(&Locker) -> LockRequest = |locker| locker.lock("a").permits(2);
    for (request, holders) in [(plain, 1), (permit, 2)] {
        let mut held = Vec::new();
        for _ in 0..holders {
            held.push(request(&other).expire(lease).acquire().await.unwrap());
        }
        let start = Instant::now();
        let call = request(&locker).renew().max_hold(most).wait(AMPLE);
        assert!(call.run(pending::<()>()).await.unwrap_err().is_max_hold_reached());
        let passed = start.elapsed();
        assert!(passed > lease + most / 2, "{passed:?}");
    }
}
