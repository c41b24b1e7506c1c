//! A renewed lock is held for as long as its guard lives, and no longer.

use std::future::pending;
use std::panic::resume_unwind;
use std::time::Duration;

use lockable_runtime::LockGuard;
use lockable_tests::sections::renewed;
use lockable_tests::unless_busy;
use tokio::time::Instant;

use crate::body::caught;
use crate::cancellation::give_up_after;
use crate::fixture::{
    Harm, KEY, Memory, NAME, Redis, Store, assert_quiet, drained, hold, hold_renewed,
};

every_backend! { one_thread: [
    the_first_renewal_comes_after_a_third,
    a_renewal_never_makes_a_deleted_lock_again,
    a_renewal_never_shortens_an_extended_lease,
] and_sentinel: [
    a_renewed_lock_outlives_its_lease,
    many_locks_are_renewed_together_also_without_their_locker,
    renewal_ends_with_the_lock_on_every_way_out,
    a_renewal_that_finds_no_lock_of_its_own_stops_the_body,
]}

every_claim! { memory_alone: Memory, one_thread, [
    the_shortest_leases_are_renewed,
]}

every_claim! { redis_alone: Redis, one_thread, [
    a_short_lease_is_never_shared,
    a_blocked_runtime_does_not_lose_its_renewed_lock,
    a_renewal_that_finds_a_list_stops_the_body,
    renewals_are_no_more_than_needed,
]}

async fn a_renewed_lock_outlives_its_lease(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let guard = hold_renewed(store, &locker).await;
    let token = guard.lease().fencing_token();
    for _ in 0..if store.is_exact() { 500 } else { 1 } {
        store.elapse(store.lease() / 4).await;
        assert!(guard.lease().is_held() && !guard.lease().is_lost() && store.has(NAME));
        assert!(
            guard.lease().remaining() < store.lease() && store.life(NAME).unwrap() <= store.lease()
        );
        assert_eq!(guard.lease().fencing_token(), token);
        assert!(other.lock(KEY).try_acquire().await.unwrap_err().is_busy());
    }
    renewed(&guard).await;
    guard.release().await.unwrap();
    assert!(hold(&other).await.lease().fencing_token() > token);
}

/// More than one command renews.
async fn many_locks_are_renewed_together_also_without_their_locker(store: &Store) {
    let locker = store.locker().await;
    let mut guards = Vec::new();
    for number in 0..400 {
        // Their leases differ, and so do the batches.
        let expire = store.lease() * (8 + number % 3) / 8;
        let request = locker.lock(number.to_string()).expire(expire).renew();
        guards.push((request.acquire().await.unwrap(), expire));
    }
    drop(locker);
    let start = Instant::now();
    store.elapse(store.lease() / 2).await;
    // Each ends later than it would by its grant.
    let is_renewed = |(guard, expire): &(LockGuard, Duration)| {
        let passed = start.elapsed();
        guard.lease().remaining() + passed > *expire
    };
    store.eventually(|| guards.iter().all(is_renewed)).await;
    assert_eq!(store.locks().len(), guards.len());
}

/// The end of a lease in the store moves only by a renewal. On a server that of a longer lease comes after a second, which
/// also asks to hear of changes.
async fn the_first_renewal_comes_after_a_third(store: &Store) {
    let locker = store.locker().await;
    let start = Instant::now();
    let expire = store.lease() / 2;
    let guard = locker.lock(KEY).expire(expire).renew().acquire().await.unwrap();
    let mut life = store.life(NAME).unwrap_or_default();
    loop {
        store.elapse(expire / 100).await;
        // A slow machine may let it end.
        let Some(next) = store.life(NAME) else { return assert!(!store.is_exact()) };
        if next > life {
            break;
        }
        life = next;
    }
    assert!(start.elapsed() >= expire / 3, "{:?}", start.elapsed());
    // What the holder counts on moves with it: it ends later than it would by its grant.
    let is_renewed = || {
        let passed = start.elapsed();
        guard.lease().remaining() + passed > expire || !guard.lease().is_held()
    };
    store.eventually(is_renewed).await;
    assert!(guard.lease().is_held() || !store.is_exact());
}

/// Goal: a renewal that continues, or brings a lock back, after its end.
/// Method: one lock for each way out, each renewed before; then the store is watched.
async fn renewal_ends_with_the_lock_on_every_way_out(store: &Store) {
    let locker = store.locker().await;
    let request = |key: &str| locker.lock(key).expire(store.lease()).renew();
    let held = async |key| request(key).acquire().await.unwrap();
    let (released, dropped, given_up) =
        (held("released").await, held("dropped").await, held("given up").await);
    let aborted = tokio::spawn(request("aborted").run(pending::<()>()));
    let panicking = async {
        store.elapse(store.lease() / 2).await;
        resume_unwind(Box::new("the body's own"));
    };
    let completing = async {
        store.elapse(store.lease() / 2).await;
        Err::<(), _>("the body's own")
    };
    let (panicked, completed) = tokio::join!(
        caught(request("panicked").run::<_>(panicking)),
        request("completed").run(completing),
    );
    assert!(panicked.is_err() && completed.unwrap().is_err());
    // A panic leaves the release to the background.
    store.eventually(|| store.locks().len() == 4).await;
    released.release().await.unwrap();
    drop(dropped);
    give_up_after(1, given_up.release()).await;
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    drained().await;
    assert_eq!(store.locks(), [""; 0]);
    assert_quiet(store).await;
}

async fn a_renewal_never_makes_a_deleted_lock_again(store: &Store) {
    let guard = hold_renewed(store, &store.locker().await).await;
    renewed(&guard).await;
    store.delete(NAME);
    let error = guard.lease().lost().await;
    assert!(error.is_lost() && error.to_string().contains("it has no holder"), "{error}");
    assert_eq!(store.locks(), [""; 0]);
    assert_quiet(store).await;
    assert!(guard.release().await.unwrap_err().is_lost());
    assert_eq!(store.locks(), [""; 0]);
}

async fn a_renewal_that_finds_no_lock_of_its_own_stops_the_body(store: &Store) {
    let locker = store.locker().await;
    let harms = [(Harm::Flushed, "it has no holder"), (Harm::Taken, "another holder has it")];
    for (harm, why) in harms {
        let body = async {
            harm.befall(store);
            pending::<()>().await;
        };
        let error = locker.lock(KEY).expire(store.lease()).renew().run(body).await.unwrap_err();
        assert!(error.is_lost() && !error.is_body_finished(), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(store.has(NAME), matches!(harm, Harm::Taken));
    }
    assert_quiet(store).await;
    let life = store.life(NAME).unwrap();
    assert!(life > 10 * store.lease() && life < 20 * store.lease(), "{life:?}");
    store.delete(NAME);
}

async fn a_renewal_never_shortens_an_extended_lease(store: &Store) {
    let guard = hold_renewed(store, &store.locker().await).await;
    guard.lease().extend(20 * store.lease()).await.unwrap();
    store.elapse(store.lease() / 2).await;
    assert!(
        guard.lease().remaining() > 15 * store.lease()
            && store.life(NAME).unwrap() > 15 * store.lease()
    );
    guard.release().await.unwrap();
}

async fn the_shortest_leases_are_renewed(store: &Memory) {
    let locker = store.locker().await;
    for millis in [10, 11, 20, 50, 200, 1_000] {
        let expire = Duration::from_millis(millis);
        let guard = locker.lock(KEY).expire(expire).renew().try_acquire().await.unwrap();
        for _ in 0..30 {
            store.elapse(expire / 2).await;
            assert!(guard.lease().is_held() && store.has(NAME), "{expire:?}");
        }
        guard.release().await.unwrap();
    }
}

/// Such a lease may be lost, which is no fault.
async fn a_short_lease_is_never_shared(store: &Redis) {
    let (locker, other) = (store.locker().await, store.locker().await);
    for millis in [10, 20, 50, 100] {
        let expire = Duration::from_millis(millis);
        let request = locker.lock(KEY).expire(expire).renew();
        let Ok(guard) = request.try_acquire().await else { continue };
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(150) {
            if unless_busy(other.lock(KEY).try_acquire().await).is_some() {
                assert!(!guard.lease().is_held(), "{expire:?} is shared");
                break;
            }
        }
        // Also while its release is still on its way.
        drop(guard);
        drained().await;
    }
}

async fn a_blocked_runtime_does_not_lose_its_renewed_lock(store: &Redis) {
    let locker = store.locker().await;
    let guard = hold_renewed(store, &locker).await;
    let completed = locker.lock("other").expire(store.lease()).renew();
    completed.run(async { store.block(store.lease() * 5 / 4) }).await.unwrap();
    assert!(guard.lease().is_held() && !guard.lease().is_lost() && store.has(NAME));
}

async fn a_renewal_that_finds_a_list_stops_the_body(store: &Redis) {
    let locker = store.locker().await;
    let body = async {
        store.put_list(NAME);
        pending::<()>().await;
    };
    let error = locker.lock(KEY).expire(store.lease()).renew().run(body).await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("another holder"), "{error}");
    assert_quiet(store).await;
    let admin = store.admin_of(NAME);
    assert_eq!((admin.type_of(NAME).as_str(), admin.pttl(NAME)), ("list", -1));
    store.delete(NAME);
}

/// Three requests a lease, because each renewal counts from the one before; where answers come too
/// late, a ninth of a lease apart.
async fn renewals_are_no_more_than_needed(store: &Redis) {
    let guard = hold_renewed(store, &store.locker().await).await;
    let (start, before) = (Instant::now(), store.admin_of(NAME).command_calls("pexpire"));
    store.elapse(store.lease() * 3 / 4).await;
    renewed(&guard).await;
    let renewals = store.admin_of(NAME).command_calls("pexpire") - before;
    let most = 1 + start.elapsed().as_millis() / (store.lease() / 9).as_millis();
    assert!(0 < renewals && u128::from(renewals) <= most, "{renewals}");
    drop(guard);
}
