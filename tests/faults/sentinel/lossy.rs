//! Failovers to a replica that did not receive the latest grants.

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::sections::{SOON, is_clean};
use lockable_tests::{Pace, Proxy, Sections, Sentinels, Server, wait};
use tokio::runtime::{Builder, Runtime};

use crate::support::{FENCE, LIMIT, connect};

/// Goal: no holder continues with a lock that the new primary has never heard of.
/// Method: the replicas are stopped, two locks are acquired, one of them renewed, and the primary is killed.
#[tokio::test]
async fn holders_learn_soon_of_locks_that_a_failover_lost() {
    let (group, sections) = (Sentinels::start(), Sections::default());
    let locker = connect(&group.url()).await;
    let replicated = locker.lock("replicated").acquire().await.unwrap();
    hold(&locker, &sections).await;
    replicate(&group).await;
    let take = async |request: LockRequest| {
        let guard = request.acquire().await.unwrap();
        sections.enter(&guard);
        guard
    };
    let (one, two, pace) = lose(&group, async || {
        (take(locker.lock("k").renew()).await, take(locker.lock("plain")).await)
    })
    .await;
    for guard in [one, two] {
        assert!(guard.lost().await.is_lost());
        sections.leave(&guard);
    }
    assert!(pace.elapsed() <= SOON, "{:?}", pace.elapsed());
    for locker in [&locker, &connect(&group.url()).await] {
        hold(locker, &sections).await;
    }
    sections.assert_sound();
    assert!(replicated.is_held());
    replicated.release().await.unwrap();
    is_clean(group.primary()).await;
}

/// Goal: no lease is left out, whichever runtime's connection its lock was acquired on.
/// Method: a locker has a connection in each of two runtimes, and holds a lock of each that the failover
/// loses.
#[tokio::test]
async fn a_failover_checks_the_leases_of_every_runtime() {
    let (group, other) = (Sentinels::start(), runtime());
    let locker = connect(&group.url()).await;
    let there = |key: &'static str| {
        let locker = locker.clone();
        other.spawn(async move { locker.lock(key).renew().acquire().await.unwrap() })
    };
    let replicated = there("replicated").await.unwrap();
    hold(&locker, &Sections::default()).await;
    replicate(&group).await;
    let (one, two, pace) = lose(&group, async || {
        (locker.lock("k").renew().acquire().await.unwrap(), there("there").await.unwrap())
    })
    .await;
    assert!(one.lost().await.is_lost() && two.lost().await.is_lost());
    assert!(pace.elapsed() <= SOON, "{:?}", pace.elapsed());
    assert!(replicated.is_held());
    for (guard, is_lost) in [(one, true), (two, true), (replicated, false)] {
        assert_eq!(guard.release().await.is_err_and(|error| error.is_lost()), is_lost);
    }
    is_clean(group.primary()).await;
    other.shutdown_background();
}

/// Goal: a lock that was released is not taken on the new primary until its lease would have ended.
/// Method: locks are released after the switch, of which their locker hears only then.
#[tokio::test]
async fn releases_that_a_planned_failover_lost_are_repeated() {
    const LOCKS: usize = 50;
    let group = Sentinels::builder().at_usual_periods().start();
    let doors = group.doors();
    let locker = connect(&group.url_through(&doors)).await;
    let mut guards = Vec::new();
    for number in 1..LOCKS {
        guards.push(locker.lock(format!("k:{number}")).acquire().await.unwrap());
    }
    guards.push(locker.lock("k").acquire().await.unwrap());
    replicate(&group).await;
    doors.iter().for_each(Proxy::hold_messages);
    let before = group.primary();
    let after = group.fail_over();
    for guard in guards {
        guard.release().await.unwrap();
    }
    let locks = |server: &Server| server.admin().keys("disLock:*").len();
    assert_eq!((locks(before), locks(after)), (0, LOCKS));
    doors.iter().for_each(Proxy::release_messages);
    let pace = Pace::start();
    wait::until_async(LIMIT, async || locks(after) == 0).await;
    assert!(pace.elapsed() <= SOON, "{:?}", pace.elapsed());
    is_clean(after).await;
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

async fn hold(locker: &Locker, sections: &Sections) {
    let guard = locker.lock("k").acquire().await.unwrap();
    sections.enter(&guard);
    sections.leave(&guard);
    guard.release().await.unwrap();
}

/// Waits until every replica has the last fence counter of `k`.
async fn replicate(group: &Sentinels) {
    let counted = group.primary().admin().get(FENCE);
    for replica in group.replicas() {
        let admin = replica.admin();
        wait::until_async(LIMIT, async || admin.get(FENCE) == counted).await;
    }
}

/// Two locks of which no replica hears; the time counts from the switch.
async fn lose(
    group: &Sentinels,
    take: impl AsyncFnOnce() -> (LockGuard, LockGuard),
) -> (LockGuard, LockGuard, Pace) {
    let mut switches = group.switches();
    group.pause_replicas();
    let (one, two) = take().await;
    group.kill_primary();
    group.resume_replicas();
    switches.next().await;
    (one, two, Pace::start())
}
