//! Failovers to a replica that did not receive the latest grants. No lease ends by itself here.

use std::pin::pin;

use lockable_runtime::Locker;
use lockable_tests::sections::is_clean;
use lockable_tests::{Proxy, Sections, Sentinels, Server, wait};
use tokio::runtime::Builder;

use crate::by_hand::ByHand;
use crate::support::{FENCE, KEY, LIMIT, LONG, connect_ample};
use crate::waiting::support::queued;

/// Goal: no holder continues with a lock, or a permit, that the new primary has never heard of, whichever runtime's
/// connection it was acquired on.
/// Method: a locker has a connection in each of two runtimes. The replicas are stopped, locks and one of two permits are
/// acquired, with renewals and without, a ticket is made, and the primary is killed.
#[tokio::test]
async fn holders_learn_soon_of_locks_that_a_failover_lost() {
    let (group, sections) = (Sentinels::start(), Sections::default());
    let other = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let locker = connect_ample(&group.url()).await;
    let there = |key: &'static str| {
        let locker = locker.clone();
        other.spawn(async move { locker.lock(key).renew().acquire().await.unwrap() })
    };
    let permit = || locker.lock("permits").permits(2).renew();
    let replicated = [there("replicated").await.unwrap(), permit().acquire().await.unwrap()];
    hold(&locker, &sections).await;
    replicate(&group).await;
    let mut switches = group.switches();
    group.pause_replicas();
    let renewed = locker.lock("k").renew().acquire().await.unwrap();
    let plain = locker.lock("plain").acquire().await.unwrap();
    let last = permit().acquire().await.unwrap();
    let (name, token) = (last.lease().key().clone(), last.lease().fencing_token());
    let forgotten = [renewed, plain, there("there").await.unwrap(), last];
    let handed_on = locker.lock("ticket").acquire().await.unwrap();
    let ticket = handed_on.into_ticket(LONG).await.unwrap();
    sections.enter(&forgotten[0]);
    group.kill_primary();
    group.resume_replicas();
    switches.next().await;
    group.set_down_after(LONG);
    for guard in &forgotten {
        assert!(wait::ends(guard.lease().lost()).await.is_lost());
    }
    sections.leave(&forgotten[0]);
    for locker in [&locker, &connect_ample(&group.url()).await] {
        hold(locker, &sections).await;
    }
    sections.assert_sound();
    let late = wait::ends(locker.redeem(ticket).acquire()).await;
    assert!(late.is_err_and(|error| error.is_lost()));
    for guard in forgotten {
        assert!(guard.release().await.is_err_and(|error| error.is_lost()));
    }
    let next = permit().acquire().await.unwrap();
    assert_eq!(*next.lease().key(), name);
    assert!(next.lease().fencing_token() > token);
    assert!(permit().try_acquire().await.unwrap_err().is_busy());
    next.release().await.unwrap();
    for guard in replicated {
        assert!(guard.lease().is_held());
        guard.release().await.unwrap();
    }
    is_clean(group.primary()).await;
    other.shutdown_background();
}

/// Goal: a lock that was released is not taken on the new primary until its lease would have ended.
/// Method: locks are released after the switch, of which their locker hears only then.
#[tokio::test]
async fn releases_that_a_planned_failover_lost_are_repeated() {
    const LOCKS: usize = 50;
    let group = Sentinels::builder().down_after(LONG).at_usual_periods().start();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    let mut guards = Vec::new();
    for number in 1..LOCKS {
        guards.push(locker.lock(format!("k:{number}")).acquire().await.unwrap());
    }
    guards.push(locker.lock("k").acquire().await.unwrap());
    replicate(&group).await;
    stub_nodes.iter().for_each(Proxy::hold_messages);
    let before = group.primary();
    let after = group.fail_over();
    for guard in guards {
        guard.release().await.unwrap();
    }
    let locks = |server: &Server| server.admin().keys("disLock:*").len();
    assert_eq!((locks(before), locks(after)), (0, LOCKS));
    stub_nodes.iter().for_each(Proxy::release_messages);
    wait::until_async(LIMIT, async || locks(after) == 0).await;
    is_clean(after).await;
}

/// Goal: a body starts with a turn from before a failover, of which its call heard later, while another process has the
/// lock at the new primary.
/// Method: the call is polled by hand. Its turn comes with the answer to a query, and before the next poll the new
/// primary loses the lock.
#[tokio::test]
async fn a_turn_from_before_a_failover_is_not_used() {
    let group = Sentinels::builder().down_after(LONG).start();
    let before = group.primary();
    let locker = connect_ample(&group.url()).await;
    before.admin().set(KEY, "another");
    let mut call = pin!(locker.lock("k").wait(LONG).acquire());
    tokio::select! {
        _ = &mut call => panic!("another process has the lock"),
        () = queued(before, 1) => {}
    }
    let by_hand = ByHand::default();
    assert!(by_hand.poll(call.as_mut()).is_pending());
    // No message says that, so the line asks.
    before.admin().del(KEY);
    by_hand.woken().await;
    let after = group.fail_over();
    let admin = after.admin();
    // The locker connects to the new primary once it has left the other one.
    wait::until_async(LIMIT, async || admin.command_calls("hello") > 0).await;
    admin.del(KEY);
    let guard = connect_ample(&group.url()).await.lock("k").acquire().await.unwrap();
    assert!(by_hand.poll(call.as_mut()).is_pending(), "another process has the lock");
    queued(after, 1).await;
    let token = guard.lease().fencing_token();
    guard.release().await.unwrap();
    let turn = wait::ends(call).await.unwrap();
    assert!(turn.lease().fencing_token() > token, "{} after {token}", turn.lease().fencing_token());
    turn.release().await.unwrap();
    is_clean(after).await;
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
