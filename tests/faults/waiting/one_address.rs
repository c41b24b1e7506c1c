//! A failover behind one address: new connections lead to the new primary, and those that are open stay at the
//! old one, which is its replica by now.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::Sections;
use lockable_tests::{Proxy, Server, wait};
use tokio::task::JoinSet;

use super::support::{RECHECK, connect, queued, within};
use crate::support::{LIMIT, elapse};

/// Goal: a waiter that a hand-off passes over hears of no grant.
/// Method: waiters of three processes have subscribed at the old primary. The new one sends there what it publishes,
/// but counts no one.
#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_server_passes_on_no_grant() {
    let (old, new, proxy, guard, lockers) = held().await;
    let (sections, mut waiters) = (Arc::new(Sections::default()), JoinSet::new());
    for (number, locker) in lockers.iter().enumerate() {
        let (request, sections) = (locker.lock("k").wait_at_most(LIMIT), Arc::clone(&sections));
        waiters.spawn(async move {
            let guard = request.acquire().await.unwrap();
            sections.enter(&guard);
            // So long that a second holder at the same time is seen.
            elapse(Duration::from_millis(100)).await;
            sections.leave(&guard);
            guard.release().await.unwrap();
        });
        queued(&old, number + 1).await;
    }
    proxy.fail_over(&old, &new);
    guard.release().await.unwrap();
    waiters.join_all().await;
    sections.assert_sound();
}

/// Goal: waiters are not left with their own questions alone.
/// Method: as above, until they have subscribed at the new primary; then the lock is handed off twelve times.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_follow_to_the_new_primary() {
    let (old, new, proxy, guard, lockers) = held().await;
    let mut waiters = JoinSet::new();
    for locker in lockers {
        waiters.spawn(async move {
            for _ in 0..4 {
                let guard = locker.lock("k").wait_at_most(LIMIT).fair().acquire().await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    queued(&old, WAITERS).await;
    proxy.fail_over(&old, &new);
    let channels = ["PUBSUB", "CHANNELS", "lockable:grant:*"];
    let admin = new.admin();
    wait::until_async(LIMIT, async || admin.command::<Vec<String>>(&channels).len() == WAITERS)
        .await;
    within("twelve hand-offs", RECHECK, async {
        guard.release().await.unwrap();
        waiters.join_all().await;
    })
    .await;
}

/// A primary and its replica behind one address. The lock `k` is held by one process, and may be waited for by
/// others.
async fn held() -> (Server, Server, Proxy, LockGuard, Vec<Locker>) {
    let (old, new) = (Server::start(), Server::start());
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    let guard = connect(&proxy.url()).await.lock("k").acquire().await.unwrap();
    let mut lockers = Vec::new();
    for _ in 0..WAITERS {
        lockers.push(connect(&proxy.url()).await);
    }
    (old, new, proxy, guard, lockers)
}

const WAITERS: usize = 3;
