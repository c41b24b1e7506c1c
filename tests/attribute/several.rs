//! Functions under several locks: `keys`, and `lock_key!`.

use std::future::pending;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{
    Lease, Leases, LockError, LockErrorKind, LockKey, Locker, distributed_lock, lock_key,
};

use crate::events;
use crate::support::{BoxFuture, Journal, hold, is_free, locker, now, pause};

struct Item {
    sku: String,
}

fn items<const N: usize>(skus: [&str; N]) -> Vec<Item> {
    skus.map(|sku| Item { sku: sku.to_owned() }).into()
}

fn names(locks: &Leases) -> Vec<String> {
    locks.iter().map(|lease| lease.key().to_string()).collect()
}

#[distributed_lock(keys = ["account:{from}", "account:{to}"], locker = locks, guard = held)]
async fn transfer(locks: &Locker, from: u64, to: u64) -> Result<Vec<String>, LockError> {
    pause().await;
    assert!(held.is_held() && !is_free(locks, &format!("account:{from}")));
    assert_eq!(from == to, held[0].fencing_token() == held[1].fencing_token());
    Ok(names(&held))
}

#[distributed_lock(keys = ["account:{from}", "account:{to}"], locker = locks, guard = held)]
fn transfer_now(locks: &Locker, from: u64, to: u64) -> Result<Vec<String>, LockError> {
    Ok(names(&held))
}

#[distributed_lock(keys = ["account:{from}", "account:{to}"], locker = locks, on_busy = 0, on_error = |_| 1)]
fn transfer_boxed(locks: &Locker, from: u64, to: u64) -> BoxFuture<'_, u64> {
    Box::pin(async move { from + to })
}

#[tokio::test(start_paused = true)]
async fn each_template_is_a_lock_in_the_order_written() {
    let locks = locker().await;
    let names = ["disLock:account:7", "disLock:account:3"];
    assert_eq!(transfer(&locks, 7, 3).await.unwrap(), names);
    assert_eq!(transfer_now(&locks, 7, 3).unwrap(), names);
    assert_eq!(transfer_boxed(&locks, 7, 3).await, 10);
    assert_eq!(transfer(&locks, 7, 7).await.unwrap(), [names[0]; 2]);
    assert!(is_free(&locks, "account:7") && is_free(&locks, "account:3"));
}

#[tokio::test(start_paused = true)]
async fn one_busy_key_makes_the_call_busy() {
    #[distributed_lock(keys = ["account:{from}", "account:{to}"], locker = locks, on_busy = skip)]
    async fn skipping(locks: &Locker, from: u64, to: u64) -> Option<u64> {
        Some(from + to)
    }
    let locks = locker().await;
    let _other = hold(&locks, "account:7").await;
    for error in [
        transfer(&locks, 7, 3).await.unwrap_err(),
        transfer(&locks, 3, 7).await.unwrap_err(),
        transfer_now(&locks, 3, 7).unwrap_err(),
    ] {
        assert!(error.is_busy(), "{error}");
        assert_eq!(error.key(), Some("disLock:account:7"));
    }
    assert_eq!(transfer_boxed(&locks, 7, 3).await, 0);
    assert_eq!(skipping(&locks, 7, 3).await, None);
    assert!(is_free(&locks, "account:3"));
}

#[distributed_lock(keys = skus, locker = locks, guard = held)]
async fn order(locks: &Locker, skus: Vec<LockKey>) -> Result<Vec<String>, LockError> {
    Ok(names(&held))
}

#[distributed_lock(
    keys = items.iter().map(|item| lock_key!("sku:{}", item.sku)).collect::<Vec<_>>(),
    locker = locks,
    guard = held
)]
fn order_items(locks: &Locker, items: &[Item]) -> Result<Vec<String>, LockError> {
    assert!(held.len() == items.len());
    Ok(names(&held))
}

#[tokio::test(start_paused = true)]
async fn a_value_is_as_many_locks_as_it_has_keys() {
    let locks = locker().await;
    let skus = |count: usize| (0..count).map(|sku| lock_key!("sku:{sku}")).collect();
    for count in [1, 2, 64] {
        let skus: Result<Vec<_>, _> = skus(count);
        assert_eq!(order(&locks, skus.unwrap()).await.unwrap().len(), count);
    }
    for count in [0, 65] {
        let skus: Result<Vec<_>, _> = skus(count);
        let error = order(&locks, skus.unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::InvalidKey, "{error}");
    }
    let found = order_items(&locks, &items(["shirt", "a:b"])).unwrap();
    assert_eq!(found, ["disLock:sku:shirt", "disLock:sku:a%3Ab"]);
    // A key that cannot be made fails the call, which is not run without it.
    let error = order_items(&locks, &items(["shirt", ""])).unwrap_err();
    assert_eq!(error.kind(), LockErrorKind::InvalidKey);
    assert!(order_items(&locks, &[]).is_err());
}

#[tokio::test(start_paused = true)]
async fn keys_are_taken_from_lists_of_every_kind() {
    const A: LockKey = LockKey::from_static("a");

    #[distributed_lock(keys = [A, LockKey::new(text)?], locker = locks, guard = held)]
    async fn array(locks: &Locker, text: &str) -> Result<usize, LockError> {
        Ok(held.len())
    }
    #[distributed_lock(keys = keys, locker = locks, guard = held)]
    async fn slice(locks: &Locker, keys: &[LockKey]) -> Option<usize> {
        Some(held.len() + keys.len())
    }
    #[distributed_lock(keys = &keys, locker = locks)]
    async fn vec(locks: &Locker, keys: Vec<LockKey>) -> Option<usize> {
        Some(keys.len())
    }
    #[distributed_lock(key = lock_key!("{one}:{}", 2), locker = locks, guard = lock)]
    async fn one(locks: &Locker, one: u8) -> Option<String> {
        Some(lock.key().to_string())
    }
    let locks = locker().await;
    assert_eq!(array(&locks, "b").await.unwrap(), 2);
    assert_eq!(slice(&locks, &[A, A]).await, Some(4));
    assert_eq!(vec(&locks, vec![A]).await, Some(1));
    assert_eq!(one(&locks, 1).await.as_deref(), Some("disLock:1:2"));
}

#[test]
fn a_key_by_itself_is_rendered_as_the_attribute_does() {
    const ZONE: u8 = 3;
    let (region, item) = ("e:u", Item { sku: "x y".to_owned() });
    let key = lock_key!("{{shop}}:{region}:{}-{ZONE}:{n}", item.sku, n = 1).unwrap();
    assert_eq!(key.as_str(), "{shop}:e%3Au:x%20y-3:1");
    assert_eq!(lock_key!("nightly").unwrap(), LockKey::from_static("nightly"));
    let empty = lock_key!("sku:{}", "").unwrap_err();
    assert_eq!(empty.kind(), LockErrorKind::InvalidKey);
    assert!(empty.to_string().contains("in the key template `sku:{}`"), "{empty}");
    assert!(lock_key!("{}", "x".repeat(1_025)).is_err());
}

/// Loses or revokes a lock once the body runs.
async fn harmed<T>(locks: &TestLocks, call: impl Future<Output = T>, harm: fn(&TestLocks)) -> T {
    let harm = async {
        pause().await;
        harm(locks);
    };
    tokio::join!(locks.scope(call), harm).0
}

#[tokio::test(start_paused = true)]
async fn one_loss_or_revoke_stops_the_body_and_frees_all() {
    #[distributed_lock(keys = ["a", "b", "c"], renew)]
    async fn call(locks: &TestLocks, journal: &Journal) -> Result<(), LockError> {
        let _transaction = journal.drops("transaction").looking_at(locks.locker(), "a");
        pending().await
    }
    let (locks, journal) = (TestLocks::new(), Journal::default());
    let lost = harmed(&locks, call(&locks, &journal), |locks| locks.lose("b")).await.unwrap_err();
    assert!(lost.is_lost() && lost.key() == Some("disLock:b"), "{lost}");
    let revoked = harmed(&locks, call(&locks, &journal), |locks| locks.revoke("c", "migration"));
    let revoked = revoked.await.unwrap_err();
    assert!(revoked.is_revoked() && revoked.key() == Some("disLock:c"), "{revoked}");
    assert_eq!(journal.entries(), ["transaction when held"; 2]);
    assert!(["a", "b", "c"].iter().all(|key| is_free(locks.locker(), key)));
}

/// What finishes without one of its locks is still stopped by an operator who asks for another.
#[tokio::test(start_paused = true)]
async fn a_body_that_may_finish_outlives_a_loss_but_no_revoke() {
    #[distributed_lock(keys = ["a", "b"], renew, on_lost = finish, guard = held)]
    async fn call(ends: bool) -> Result<bool, LockError> {
        while held[0].is_held() {
            pause().await;
        }
        if !ends {
            pending::<()>().await;
        }
        Ok(held[1].is_held() && !held.is_held())
    }
    let locks = TestLocks::new();
    assert!(harmed(&locks, call(true), |locks| locks.lose("a")).await.unwrap());
    let stopped = async {
        tokio::join!(harmed(&locks, call(false), |locks| locks.lose("a")), async {
            for _ in 0..4 {
                pause().await;
            }
            locks.revoke("b", "migration");
        })
        .0
    };
    assert!(stopped.await.unwrap_err().is_revoked());
    assert!(is_free(locks.locker(), "a") && is_free(locks.locker(), "b"));
}

#[test]
fn a_sync_body_that_lost_one_lock_is_told_and_frees_the_others() {
    #[distributed_lock(keys = ["a", "b"], guard = held)]
    fn call(locks: &TestLocks) -> Result<(), LockError> {
        assert!(held.is_held());
        locks.lose("b");
        assert!(!held.is_held() && held.remaining().is_zero() && held[0].is_held());
        Ok(())
    }
    let locks = TestLocks::new();
    let error = locks.sync_scope(|| call(&locks)).unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    assert_eq!(error.key(), Some("disLock:b"));
    lockable_tests::wait::until(crate::support::LIMIT, || is_free(locks.locker(), "a"));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_one_key_releases_the_others_first() {
    #[distributed_lock(keys = ["a", "b", "c"])]
    async fn once() -> Result<(), LockError> {
        Ok(())
    }
    #[distributed_lock(keys = ["a", "b", "c"], wait = 3)]
    async fn waiting() -> Result<(), LockError> {
        Ok(())
    }
    let locks = TestLocks::new();
    for key in ["a", "b", "c"] {
        locks.fail_next(key);
        let error = locks.scope(once()).await.unwrap_err();
        assert!(error.is_unavailable() && error.key() == Some(&*format!("disLock:{key}")));
        assert!(["a", "b", "c"].iter().all(|key| is_free(locks.locker(), key)));
        locks.fail_next(key);
        let error = locks.scope(waiting()).await.unwrap_err();
        assert!(error.is_unavailable() && error.key() == Some(&*format!("disLock:{key}")));
        assert!(["a", "b", "c"].iter().all(|key| is_free(locks.locker(), key)));
    }
    let counts = locks.counts("c");
    assert_eq!(counts.failed, 2, "{counts:?}");
    locks.scope(waiting()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn any_of_the_keys_is_held_by_the_caller() {
    #[distributed_lock(key = "account:{id}", locker = locks)]
    async fn balance(locks: &Locker, id: u64) -> Result<u64, LockError> {
        Ok(id)
    }
    #[distributed_lock(keys = ["account:{from}", "account:{to}"], locker = locks)]
    async fn outer(locks: &Locker, from: u64, to: u64) -> Result<(), LockError> {
        for id in [from, to] {
            assert!(balance(locks, id).await.unwrap_err().is_held_by_caller());
            assert!(transfer(locks, 99, id).await.unwrap_err().is_held_by_caller());
            assert!(transfer_now(locks, id, 99).unwrap_err().is_held_by_caller());
        }
        assert_eq!(balance(locks, 5).await?, 5);
        Ok(())
    }
    outer(&locker().await, 7, 3).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_has_its_smaller_keys() {
    #[distributed_lock(keys = ["b", "c", "a"], wait, locker = locks, guard = held)]
    async fn call(locks: &Locker) -> Option<Vec<String>> {
        Some(names(&held))
    }
    let locks = TestLocks::new();
    let other = locks.hold("b");
    let release = async {
        pause().await;
        assert_eq!((locks.waiting("b"), locks.holder("a").is_some()), (1, true));
        drop(other);
    };
    let (found, ()) = tokio::join!(call(locks.locker()), release);
    assert_eq!(found.unwrap(), ["disLock:b", "disLock:c", "disLock:a"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_each_lock_have_the_label_of_all() {
    let locks = locker().await;
    events::listen();
    transfer(&locks, 7, 3).await.unwrap();
    let logged = events::take_all();
    for key in ["disLock:account:7", "disLock:account:3"] {
        let parts = [key, "lock=\"account:{from}, account:{to}\"", "granted"];
        let is_it = |fields: &str| parts.iter().all(|part| fields.contains(part));
        assert!(logged.iter().any(|event| is_it(&event.fields)), "{key} in {logged:#?}");
    }
}

#[test]
fn leases_are_shown_as_a_list() {
    let locks = Locker::in_memory();
    let set = now(locks.lock_all(["a", "b"]).acquire()).unwrap();
    let leases: &[Lease] = set.leases();
    assert_eq!(leases.len(), 2);
    let text = format!("{set:?} {:?} {:?}", set.leases(), locks.lock_all(["a", "b"]));
    for part in ["LockSet", "Leases", "disLock:a", "keys: [\"disLock:a\", \"disLock:b\"]"] {
        assert!(text.contains(part), "{text}");
    }
}
