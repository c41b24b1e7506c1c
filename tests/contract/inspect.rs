//! Who has a lock, asked from outside.

use lockable_runtime::LockErrorKind;

use crate::fixture::{AMPLE, KEY, NAME, Redis, Store, hold, hold_shortly};

every_backend! { one_thread: [
    a_held_lock_has_one_and_says_how_long,
    a_lock_whose_lease_passed_has_no_holder,
    another_clients_lock_has_a_holder,
    a_minimum_hold_has_a_holder_after_the_release,
    the_prefix_precedes_an_inspected_key,
    inspecting_a_free_or_held_lock_changes_nothing,
    a_body_may_inspect_its_own_lock,
] }

every_claim! { redis_alone: Redis, one_thread, [
    a_lock_without_an_end_is_reported_as_such,
    data_of_another_type_is_reported_as_such,
    a_holder_shows_no_owner_token,
] }

async fn a_held_lock_has_one_and_says_how_long(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let expire = AMPLE;
    let guard = hold(&locker).await;
    for locker in [&locker, &other] {
        let rest = locker.inspect(KEY).await.unwrap().unwrap().remaining().unwrap();
        assert!(rest > expire / 2 && rest <= expire, "{rest:?}");
    }
    guard.lease().extend(2 * expire).await.unwrap();
    let rest = other.inspect(KEY).await.unwrap().unwrap().remaining().unwrap();
    assert!(rest > expire && rest <= 2 * expire, "{rest:?}");
    // Two holders one after the other are not the same.
    let first = locker.inspect(KEY).await.unwrap();
    guard.release().await.unwrap();
    let _next = hold(&locker).await;
    assert_ne!(locker.inspect(KEY).await.unwrap(), first);
}

async fn a_lock_whose_lease_passed_has_no_holder(store: &Store) {
    let locker = store.locker().await;
    let _guard = hold_shortly(store, &locker).await;
    let holder = locker.inspect(KEY).await.unwrap();
    assert!(holder.is_none_or(|holder| holder.remaining().unwrap() <= store.short()));
    store.pass(NAME).await;
    assert_eq!(locker.inspect(KEY).await.unwrap(), None);
}

async fn another_clients_lock_has_a_holder(store: &Store) {
    let locker = store.locker().await;
    let life = AMPLE;
    store.put_foreign(NAME, life);
    let rest = locker.inspect(KEY).await.unwrap().unwrap().remaining().unwrap();
    assert!(rest > life / 2 && rest <= life, "{rest:?}");
    store.delete(NAME);
    assert_eq!(locker.inspect(KEY).await.unwrap(), None);
}

async fn a_minimum_hold_has_a_holder_after_the_release(store: &Store) {
    let locker = store.locker().await;
    let least = AMPLE;
    let guard = locker.lock(KEY).expire(2 * least).min_hold(least).acquire().await.unwrap();
    guard.release().await.unwrap();
    let rest = locker.inspect(KEY).await.unwrap().unwrap().remaining().unwrap();
    assert!(rest > least / 2 && rest <= least, "{rest:?}");
    store.lose_all_data();
}

async fn the_prefix_precedes_an_inspected_key(store: &Store) {
    let locker = store.locker().await;
    let shop = store.builder().prefix("shop:").connect().await.unwrap();
    let guard = hold(&shop).await;
    assert!(shop.inspect(KEY).await.unwrap().is_some());
    assert_eq!(locker.inspect(KEY).await.unwrap(), None);
    let bare = store.builder().prefix("").connect().await.unwrap();
    assert!(bare.inspect(guard.lease().key().as_str()).await.unwrap().is_some());
}

async fn inspecting_a_free_or_held_lock_changes_nothing(store: &Store) {
    let locker = store.locker().await;
    assert_eq!(locker.inspect(KEY).await.unwrap(), None);
    assert_eq!(store.keyspace(), vec![]);
    let guard = hold(&locker).await;
    let (owner, life) = (store.owner(NAME), store.life(NAME));
    locker.inspect(KEY).await.unwrap();
    assert!(store.owner(NAME) == owner && store.life(NAME) <= life);
    guard.release().await.unwrap();
    assert_eq!(locker.inspect(KEY).await.unwrap(), None);
}

async fn a_body_may_inspect_its_own_lock(store: &Store) {
    let locker = store.locker().await;
    let body = async { locker.inspect(KEY).await.unwrap() };
    assert!(locker.lock(KEY).run(body).await.unwrap().is_some());
}

async fn a_lock_without_an_end_is_reported_as_such(store: &Redis) {
    let locker = store.locker().await;
    // Other clients' texts need not be any.
    for value in ["their token", "", "\u{1}"] {
        store.admin_of(NAME).set(NAME, value);
        let holder = locker.inspect(KEY).await.unwrap().unwrap();
        assert_eq!(holder.remaining(), None);
    }
    store.admin_of(NAME).command::<()>(&["SETBIT", NAME, "0", "1"]);
    assert!(locker.inspect(KEY).await.unwrap().is_some());
    store.delete(NAME);
}

async fn data_of_another_type_is_reported_as_such(store: &Redis) {
    let locker = store.locker().await;
    store.admin_of(NAME).command::<()>(&["RPUSH", NAME, "a"]);
    let error = locker.inspect(KEY).await.unwrap_err();
    assert!(error.kind() == LockErrorKind::WrongType && error.key() == Some(NAME), "{error}");
    assert_eq!(
        (store.admin_of(NAME).type_of(NAME).as_str(), store.admin_of(NAME).pttl(NAME)),
        ("list", -1)
    );
    store.delete(NAME);
}

/// A reader who knows the token can release the lock.
async fn a_holder_shows_no_owner_token(store: &Redis) {
    let locker = store.locker().await;
    let guard = hold(&locker).await;
    let owner = store.owner(NAME).unwrap();
    let holder = locker.inspect(KEY).await.unwrap().unwrap();
    for shown in [format!("{holder:?}"), format!("{holder:#?}"), format!("{guard:?}")] {
        assert!(!shown.contains(&owner), "{shown}");
    }
    assert!(format!("{holder:?}").contains("remaining"));
}
