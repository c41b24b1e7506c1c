//! A failover behind one address: new connections lead to the new primary, and those that are open stay at the
//! old one, which is its replica by now.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::Sections;
use lockable_tests::{Proxy, Server, clock, wait};
use rstest::rstest;
use tokio::task::JoinSet;

use super::support::{
    connect, connect_rechecking, in_queue, kill_subscribers, listening, owners_in_queue, publish,
    queued, release_last,
};
use crate::support::{KEY, LIMIT, LONG, elapse};

/// Goal: a waiter that a hand-off passes over hears of no turn.
/// Method: waiters of three processes have subscribed at the old primary. The new one sends there what it publishes,
/// but counts no one.
#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_server_passes_on_no_wake_up() {
    let (old, new, proxy, guard, lockers) = held().await;
    let (sections, mut waiters) = (Arc::new(Sections::default()), JoinSet::new());
    for (number, locker) in lockers.iter().enumerate() {
        let (request, sections) = (locker.lock("k").wait(LONG), Arc::clone(&sections));
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

/// Goal: waiters are not left with their own queries alone.
/// Method: as above, until they have subscribed at the new primary; then the lock is handed off twelve times.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_follow_to_the_new_primary() {
    let (old, new, proxy, guard, lockers) = held().await;
    let mut waiters = JoinSet::new();
    for locker in lockers {
        waiters.spawn(async move {
            for _ in 0..4 {
                let guard = locker.lock("k").wait(LONG).fair().acquire().await.unwrap();
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
    guard.release().await.unwrap();
    wait::ends(waiters.join_all()).await;
}

/// Goal: a message of a server that was left starts a body.
/// Method: the waiter is still subscribed at the old primary, and asks the new one.
#[tokio::test]
async fn a_wake_up_of_the_old_primary_starts_no_body() {
    let (old, new, proxy) = pair();
    let (holders, locker) =
        (listening(&old, &proxy.url()).await, listening(&old, &proxy.url()).await);
    let guard = holders.lock("k").acquire().await.unwrap();
    let waiter = in_queue(&old, &locker).await;
    let owner = owners_in_queue(&old.admin()).remove(0);
    proxy.fail_over(&old, &new);
    old.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let admin = new.admin();
    let asked = admin.command_calls("lpos");
    publish(&old.admin(), &owner, &format!("{owner}\n{KEY}"));
    wait::until_async(LIMIT, async || admin.command_calls("lpos") > asked).await;
    assert!(!waiter.is_finished() && guard.lease().is_held());
    assert_eq!(owners_in_queue(&admin), [owner]);
    let token = guard.lease().fencing_token();
    kill_subscribers(&old.admin());
    guard.release().await.unwrap();
    let next = wait::ends(waiter).await.unwrap();
    assert!(next.lease().fencing_token() > token);
    release_last(&new, next).await;
}

/// Goal: the clock of a server that is promoted makes a lease longer or shorter, and tokens rise all the same.
/// Method: it is ahead by more than the lease, which is over there, or behind by as much.
#[rstest]
#[case::ahead(Server::set_clock_forward, true)]
#[case::behind(Server::set_clock_back, false)]
#[tokio::test]
async fn tokens_rise_at_a_new_primary_with_another_clock(
    #[case] set_clock: fn(&Server, Duration),
    #[case] is_over: bool,
) {
    if !clock::can_be_set() {
        return;
    }
    let (old, new) = (Server::start(), Server::builder().clock().start());
    set_clock(&new, 2 * LONG);
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    let (locker, other) = (connect(&proxy.url()).await, connect_rechecking(&proxy.url()).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiter = in_queue(&old, &other).await;
    proxy.fail_over(&old, &new);
    if is_over {
        // The next call leads to the new primary, where the lease is checked.
        locker.lock("first").run(async {}).await.unwrap();
        assert!(wait::ends(guard.lease().lost()).await.is_lost());
    } else {
        assert!(new.admin().pttl(KEY) > 60_000 && !waiter.is_finished());
        guard.lease().extend(LONG).await.unwrap();
    }
    let token = guard.lease().fencing_token();
    drop(guard);
    let next = wait::ends(waiter).await.unwrap();
    assert!(next.lease().fencing_token() > token);
    release_last(&new, next).await;
}

/// A primary and its replica behind one address. The lock `k` is held by one process, and may be waited for by
/// others.
async fn held() -> (Server, Server, Proxy, LockGuard, Vec<Locker>) {
    let (old, new, proxy) = pair();
    let guard = connect(&proxy.url()).await.lock("k").acquire().await.unwrap();
    let mut lockers = Vec::new();
    for _ in 0..WAITERS {
        lockers.push(connect_rechecking(&proxy.url()).await);
    }
    (old, new, proxy, guard, lockers)
}

fn pair() -> (Server, Server, Proxy) {
    let (old, new) = (Server::start(), Server::start());
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    (old, new, proxy)
}

const WAITERS: usize = 3;
