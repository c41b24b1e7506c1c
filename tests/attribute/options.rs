//! The options besides the key: expire, prefix, guard, locker.

use lockable_runtime::LockErrorKind;
use std::time::Duration;

use lockable_runtime::{FencingToken, Lease, LockError, Locker, distributed_lock};

use crate::support::{LEASE, SECOND, hold, key_of, locker, pause};

/// One per cent and two milliseconds less, which is what a holder may count on.
fn usable(expire: Duration) -> Duration {
    expire.saturating_sub(expire / 100).saturating_sub(Duration::from_millis(2))
}

/// How long the lease of a call with this `expire` lasts.
macro_rules! lease_of {
    ($locks:expr $(, expire = $expire:expr)?) => {{
        #[distributed_lock(key = "k", locker = locks, guard = lock $(, expire = $expire)?)]
        async fn call(locks: &Locker) -> Option<Duration> {
            Some(lock.remaining())
        }
        call($locks).await.unwrap()
    }};
}

#[tokio::test(start_paused = true)]
async fn every_form_of_expire_is_a_duration() {
    const MINUTE: Duration = Duration::from_secs(60);

    let locks = locker().await;
    assert_eq!(lease_of!(&locks), usable(LEASE));
    assert_eq!(lease_of!(&locks, expire = 20), usable(SECOND * 20));
    assert_eq!(lease_of!(&locks, expire = "1500ms"), usable(Duration::from_millis(1_500)));
    assert_eq!(lease_of!(&locks, expire = "1h1m30s"), usable(SECOND * 3_690));
    assert_eq!(lease_of!(&locks, expire = MINUTE * 2), usable(MINUTE * 2));
    let locks = Locker::builder().url("memory://").expire(SECOND * 500).connect().await.unwrap();
    assert_eq!(lease_of!(&locks), usable(SECOND * 500));
}

#[tokio::test(start_paused = true)]
async fn a_too_short_expire_refuses_the_call() {
    #[distributed_lock(key = "k", expire = expire, locker = locks)]
    async fn call(locks: &Locker, expire: Duration) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let error = call(&locker().await, Duration::from_micros(9_999)).await.unwrap_err();
    assert!(error.kind() == LockErrorKind::InvalidOption);
    assert_eq!(error.key(), Some("disLock:k"));
}

#[tokio::test(start_paused = true)]
async fn a_prefix_replaces_the_lockers() {
    let locks = Locker::builder().url("memory://").prefix("app:").connect().await.unwrap();
    assert_eq!(key_of!(&locks, [key = "{id}", prefix = "shop:"](id: u8 = 7)), "shop:7");
    assert_eq!(key_of!(&locks, [key = "k", prefix = ""]()), "k");
    assert_eq!(key_of!(&locks, [key = "k"]()), "app:k");
}

#[tokio::test(start_paused = true)]
async fn the_guard_describes_the_lease() {
    #[distributed_lock(key = "k", locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Option<(FencingToken, Lease)> {
        pause().await;
        assert!(lock.is_held());
        assert_eq!(lock.remaining(), usable(LEASE));
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

#[tokio::test(start_paused = true)]
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
