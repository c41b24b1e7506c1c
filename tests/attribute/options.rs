//! The options besides the key: expire, prefix, guard, locker, crate.

use std::time::Duration;

use lockable_runtime::{FencingToken, Lease, LockError, Locker, distributed_lock};

use crate::support::{hold, is_free, locker, pause};

/// One per cent and two milliseconds less, which is what a holder may count on.
fn usable(expire: Duration) -> Duration {
    expire.saturating_sub(expire / 100).saturating_sub(Duration::from_millis(2))
}

#[tokio::test(start_paused = true)]
async fn every_form_of_expire_is_a_duration() {
    const MINUTE: Duration = Duration::from_secs(60);

    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    async fn default(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    #[distributed_lock(key = "k", expire = 20, locker = locks, guard = lock)]
    async fn seconds(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    #[distributed_lock(key = "k", expire = "1500ms", locker = locks, guard = lock)]
    async fn milliseconds(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    #[distributed_lock(key = "k", expire = "1h1m30s", locker = locks, guard = lock)]
    async fn mixed(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    #[distributed_lock(key = "k", expire = MINUTE * 2, locker = locks, guard = lock)]
    async fn expression(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    let locks = locker().await;
    assert_eq!(default(&locks).await, Some(usable(Duration::from_secs(10))));
    assert_eq!(seconds(&locks).await, Some(usable(Duration::from_secs(20))));
    assert_eq!(milliseconds(&locks).await, Some(usable(Duration::from_millis(1_500))));
    assert_eq!(mixed(&locks).await, Some(usable(Duration::from_secs(3_690))));
    assert_eq!(expression(&locks).await, Some(usable(MINUTE * 2)));
}

#[tokio::test]
async fn a_lockers_own_expire_is_its_default() {
    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    let builder = Locker::builder().url("memory://").expire(Duration::from_secs(500));
    let remaining = call(&builder.connect().await.unwrap()).await.unwrap();
    assert!(remaining > Duration::from_secs(490), "{remaining:?}");
}

#[tokio::test]
async fn an_expire_expression_is_evaluated_once_a_call() {
    #[distributed_lock(key = "k", expire = next(calls), locker = locks)]
    async fn call(locks: &Locker, calls: &mut u64) -> Option<u64> {
        pause().await;
        Some(*calls)
    }
    fn next(calls: &mut u64) -> Duration {
        *calls += 1;
        Duration::from_secs(*calls)
    }
    let (locks, mut calls) = (locker().await, 0);
    assert_eq!(call(&locks, &mut calls).await, Some(1));
    assert_eq!(call(&locks, &mut calls).await, Some(2));
    let _other = hold(&locks, "k").await;
    assert_eq!(call(&locks, &mut calls).await, None);
    assert_eq!(calls, 3);
}

#[tokio::test]
async fn a_too_short_expire_refuses_the_call() {
    #[distributed_lock(key = "k", expire = expire, locker = locks)]
    async fn call(locks: &Locker, expire: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let error = call(&locker().await, Duration::from_micros(9_999)).await.unwrap_err();
    assert!(error.is_invalid_option());
    assert_eq!(error.key(), Some("disLock:k"));
}

#[tokio::test]
async fn a_prefix_replaces_the_lockers() {
    #[distributed_lock(key = "{id}", prefix = "shop:", locker = locks, guard = lock)]
    async fn own(locks: &Locker, id: u8) -> Option<String> {
        let _ = id;
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = "k", prefix = "", locker = locks, guard = lock)]
    async fn none(locks: &Locker) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    async fn lockers(locks: &Locker) -> Option<String> {
        Some(lock.key().to_string())
    }
    let locks = Locker::builder().url("memory://").prefix("app:").connect().await.unwrap();
    assert_eq!(own(&locks, 7).await.as_deref(), Some("shop:7"));
    assert_eq!(none(&locks).await.as_deref(), Some("k"));
    assert_eq!(lockers(&locks).await.as_deref(), Some("app:k"));
}

#[tokio::test]
async fn the_guard_describes_the_lease() {
    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Option<(FencingToken, Lease)> {
        pause().await;
        assert!(lock.is_held());
        assert!(lock.remaining() > Duration::from_secs(5));
        assert_eq!(lock.key().as_str(), "disLock:k");
        Some((lock.fencing_token(), lock))
    }
    let locks = locker().await;
    let (first, lease) = call(&locks).await.unwrap();
    assert!(!lease.is_held(), "the lease outlived the lock");
    assert_eq!(lease.remaining(), Duration::ZERO);
    let (second, _) = call(&locks).await.unwrap();
    assert!(second > first, "the fencing token did not grow");
}

#[tokio::test]
async fn any_expression_names_the_locker() {
    struct App {
        shops: Vec<(&'static str, Locker)>,
    }
    impl App {
        fn shop(&self, name: &str) -> Option<&Locker> {
            self.shops.iter().find(|shop| shop.0 == name).map(|shop| &shop.1)
        }

        #[distributed_lock(key = "k", locker = self.shop(name)?.clone())]
        async fn call(&mut self, name: &str) -> Option<usize> {
            self.shops.pop();
            Some(self.shops.len())
        }
    }
    let (one, two) = (locker().await, locker().await);
    let mut app = App { shops: vec![("one", one.clone()), ("two", two)] };
    let _other = hold(&one, "k").await;
    assert_eq!(app.call("one").await, None);
    assert_eq!(app.call("three").await, None);
    assert_eq!(app.call("two").await, Some(1));
}

mod reexported {
    pub(crate) use lockable_runtime as locks;
}

#[tokio::test]
async fn the_runtime_may_live_elsewhere() {
    #[distributed_lock(
        key = "k:{id}",
        expire = Duration::from_secs(3),
        crate = crate::options::reexported::locks,
        locker = locks,
        on_busy = skip
    )]
    async fn call(locks: &Locker, id: u8) -> Option<u8> {
        assert!(!is_free(locks, "k:7").await);
        Some(id)
    }
    assert_eq!(call(&locker().await, 7).await, Some(7));
}
