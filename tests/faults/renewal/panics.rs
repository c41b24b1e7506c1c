//! A hook of the user that panics in the background.

use std::time::Duration;

use lockable_tests::{Server, wait};

use crate::events;
use crate::support::{LIMIT, connect_ample};
use crate::waiting::support::renewed;

/// Goal: neither the lease whose event it was, nor another one of the same batch, ends for that.
/// Method: a subscriber panics at each renewal of the first lock. All three are due at the same time.
#[tokio::test]
async fn a_subscriber_that_panics_costs_no_renewal() {
    events::panic_at(["mine:renewed", "a renewal ended"]);
    let server = Server::start();
    let locker = connect_ample(&server.url()).await;
    let hold = async |key: &str| locker.lock(key).expire(LEASE).renew().acquire().await.unwrap();
    let guards = [hold("mine:renewed").await, hold("mine:second").await, hold("mine:third").await];
    for _ in 0..2 {
        for guard in &guards {
            renewed(guard).await;
        }
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// Goal: a loss that a subscriber panics at is a loss, and is none of the others.
/// Method: nothing but the renewal that is due for both shows that one is gone.
#[tokio::test]
async fn a_subscriber_that_panics_at_a_loss_costs_no_other_lease() {
    events::panic_at(["mine:lost", "the lock was lost"]);
    let untracked = "on >secret ~* &* +@all -client|tracking";
    let server = Server::builder().user("app", untracked).start();
    let locker = connect_ample(&server.url_with("app", "secret", 0)).await;
    let hold = async |key: &str| locker.lock(key).expire(LEASE).renew().acquire().await.unwrap();
    let [deleted, kept] = [hold("mine:lost").await, hold("mine:held").await];
    server.admin().del("disLock:mine:lost");
    server.admin().command::<u64>(&["CLIENT", "KILL", "USER", "app"]);
    assert!(wait::ends(deleted.lease().lost()).await.is_lost());
    renewed(&kept).await;
    renewed(&kept).await;
    kept.release().await.unwrap();
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.keys("disLock:*").is_empty()).await;
}

/// It is renewed after a third of it.
const LEASE: Duration = Duration::from_secs(6);
