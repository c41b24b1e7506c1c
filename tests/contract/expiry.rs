//! A lease ends by itself, and its holder knows before anybody else can have the lock.

use std::time::Duration;

use lockable_tests::{unless_busy, wait};
use tokio::time::Instant;

use crate::fixture::{AMPLE, KEY, NAME, Store, hold, hold_shortly};

every_backend! { one_thread: [
    a_valid_lease_excludes_every_other_holder,
    the_holder_gives_up_before_the_store_does,
    a_stored_lease_is_exactly_as_long_as_asked,
    the_lockers_own_lease_is_its_default,
] }

/// Goal: a grant to another while the first holder still says that it holds.
/// Method: the other tries without a pause from before the lease's end until it gets the lock.
async fn a_valid_lease_excludes_every_other_holder(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let first = hold_shortly(store, &locker).await;
    let second = loop {
        if let Some(second) = unless_busy(other.lock(KEY).try_acquire().await) {
            break second;
        }
        // Where the fixture controls time, it passes only here.
        store.block(store.short() / 1000);
    };
    assert!(!first.lease().is_held() && second.lease().is_held());
}

/// Goal: the two ends of one lease, the holder's own and the store's, in this order.
/// Method: both remainders are asked for, the store's first. The time that passes between the two
/// queries can only make the holder's look shorter, so it is taken off the difference.
async fn the_holder_gives_up_before_the_store_does(store: &Store) {
    let held = hold(&store.locker().await).await;
    let is_proven = || {
        let start = Instant::now();
        let Some(in_store) = store.life(NAME) else { return false };
        let own = held.lease().remaining();
        own + start.elapsed() < in_store
    };
    wait::until(wait::HANG, is_proven);
    assert!(held.lease().is_held());
}

async fn a_stored_lease_is_exactly_as_long_as_asked(store: &Store) {
    let locker = store.locker().await;
    for expire in [AMPLE + Duration::from_millis(1), 2 * AMPLE] {
        let start = Instant::now();
        let held = locker.lock(KEY).expire(expire).acquire().await.unwrap();
        let life = store.life(NAME).unwrap();
        // The store may count in whole milliseconds.
        let passed = start.elapsed() + Duration::from_millis(1);
        assert!(life <= expire && expire <= life + passed, "{life:?} of {expire:?}");
        assert!(held.lease().remaining() <= expire);
        held.release().await.unwrap();
    }
}

async fn the_lockers_own_lease_is_its_default(store: &Store) {
    let locker = store.builder().expire(2 * AMPLE).connect().await.unwrap();
    let held = hold(&locker).await;
    assert!(held.lease().remaining() > AMPLE && store.life(NAME).unwrap() > AMPLE);
    let other = locker.lock("other").expire(AMPLE).acquire().await.unwrap();
    assert!(other.lease().remaining() < AMPLE);
}
