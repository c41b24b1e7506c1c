//! Messages, subscriptions, servers and keys that are lost while a call waits.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Server, wait};

use super::support::{
    AT_ONCE, QUEUE, RECHECK, is_over, is_served, queued, waiter, waiter_for, within,
};
use crate::support::{FENCE, KEY, LIMIT, connect, elapse, freed, server_and_proxy};

#[tokio::test]
async fn a_killed_subscription_costs_at_most_one_recheck() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    kill_subscriptions(&server.admin());
    guard.release().await.unwrap();
    is_served("subscription killed", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_killed_subscription_comes_back() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    let admin = server.admin();
    kill_subscriptions(&admin);
    wait::until_async(LIMIT, async || subscriptions(&admin) == 1).await;
    guard.release().await.unwrap();
    is_served("subscription came back", AT_ONCE, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn lost_messages_cost_at_most_one_recheck() {
    let (server, proxy) = server_and_proxy();
    let (locker, other) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let mut guard = other.lock("k").acquire().await.unwrap();
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    guard = within("messages lost", RECHECK, waiter).await.unwrap();
    guard.release().await.unwrap();
    is_over(&server).await;
}

/// The subscription is silent until it is taken for dead, and no other one is confirmed.
#[tokio::test]
async fn messages_lost_for_long_cost_at_most_one_recheck() {
    let (server, proxy) = server_and_proxy();
    let (locker, other) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let guard = other.lock("k").acquire().await.unwrap();
    let waiter = waiter_for(&locker, 3 * LIMIT);
    queued(&server, 1).await;
    proxy.hold_messages();
    proxy.wait_for_command("SUBSCRIBE", 2, 2 * LIMIT).await;
    elapse(Duration::from_secs(2)).await;
    guard.release().await.unwrap();
    is_served("messages lost for long", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn an_unconfirmed_subscription_costs_at_most_one_recheck() {
    let (server, proxy) = server_and_proxy();
    proxy.hold_messages();
    let (locker, other) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let guard = other.lock("k").acquire().await.unwrap();
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    guard.release().await.unwrap();
    is_served("subscription never confirmed", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_restart_without_data_costs_little() {
    let (server, locker, guard) = held().await;
    let (one, two) = (waiter(&locker), waiter(&connect(&server.url()).await));
    queued(&server, 2).await;
    server.restart();
    let (one, two) = within("server restarted", 2 * RECHECK, async {
        let serve = async |waiter: tokio::task::JoinHandle<LockGuard>| {
            waiter.await.unwrap().release().await
        };
        tokio::join!(serve(one), serve(two))
    })
    .await;
    one.unwrap();
    two.unwrap();
    drop(guard);
    is_over(&server).await;
}

#[tokio::test]
async fn flushed_scripts_cost_nothing() {
    let (server, locker, guard) = held().await;
    let one = waiter(&locker);
    queued(&server, 1).await;
    server.admin().command::<()>(&["SCRIPT", "FLUSH"]);
    guard.release().await.unwrap();
    is_served("scripts flushed", AT_ONCE, one).await;
    is_over(&server).await;
}

#[tokio::test]
async fn flushed_data_cost_at_most_one_recheck() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    server.admin().flush();
    is_served("data flushed", RECHECK, waiter).await;
    assert!(guard.release().await.unwrap_err().is_lost());
    is_over(&server).await;
}

#[tokio::test]
async fn a_deleted_lock_costs_at_most_one_recheck() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    server.admin().del(KEY);
    is_served("lock deleted", RECHECK, waiter).await;
    assert!(guard.release().await.unwrap_err().is_lost());
    is_over(&server).await;
}

#[tokio::test]
async fn a_deleted_queue_costs_at_most_one_recheck() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    server.admin().del(QUEUE);
    guard.release().await.unwrap();
    is_served("queue deleted", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_foreign_release_costs_at_most_one_recheck() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.command::<()>(&["SET", KEY, "foreign", "NX", "PX", "60000"]);
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    let compare_and_delete =
        "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
    assert_eq!(admin.command::<u64>(&["EVAL", compare_and_delete, "1", KEY, "foreign"]), 1);
    is_served("foreign holder released", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_foreign_holder_that_dies_costs_its_lease() {
    let (server, locker) = server_and_locker().await;
    server.admin().command::<()>(&["SET", KEY, "foreign", "NX", "PX", "700"]);
    let what = "foreign lease of 700 ms";
    is_served(what, Duration::from_millis(700) + AT_ONCE, waiter(&locker)).await;
    is_over(&server).await;
}

#[tokio::test]
async fn a_deleted_endless_lock_costs_one_recheck() {
    let (server, locker) = server_and_locker().await;
    server.admin().set(KEY, "foreign");
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    server.admin().del(KEY);
    is_served("foreign lock without an end deleted", RECHECK, waiter).await;
    is_over(&server).await;
}

#[tokio::test]
async fn foreign_data_at_the_lock_are_reported_and_untouched() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.command::<()>(&["RPUSH", KEY, "theirs"]);
    let wait = locker.lock("k").wait_at_most(LIMIT).acquire();
    let error = within("foreign data at the lock", AT_ONCE, wait).await.unwrap_err();
    assert!(error.is_wrong_type() && error.to_string().contains(KEY), "{error}");
    assert_eq!(admin.command::<Vec<String>>(&["LRANGE", KEY, "0", "-1"]), ["theirs"]);
    assert_eq!(admin.keys("lockable:queue:*"), [""; 0]);
}

#[tokio::test]
async fn foreign_data_during_a_wait_are_reported_and_untouched() {
    let (server, locker, guard) = held().await;
    let waiter = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).acquire());
    queued(&server, 1).await;
    let admin = server.admin();
    admin.del(KEY);
    admin.command::<()>(&["RPUSH", KEY, "theirs"]);
    let error = within("foreign data during a wait", RECHECK, waiter).await.unwrap().unwrap_err();
    assert!(error.is_wrong_type() && error.to_string().contains(KEY), "{error}");
    assert!(guard.release().await.unwrap_err().is_lost());
    wait::until_async(LIMIT, async || admin.keys("lockable:queue:*").is_empty()).await;
    assert_eq!(admin.command::<Vec<String>>(&["LRANGE", KEY, "0", "-1"]), ["theirs"]);
}

#[tokio::test]
async fn foreign_data_at_the_queue_are_reported_and_untouched() {
    let (server, locker, guard) = held().await;
    server.admin().set(QUEUE, "theirs");
    let wait = locker.lock("k").wait_at_most(LIMIT).acquire();
    let error = within("foreign data at the queue", AT_ONCE, wait).await.unwrap_err();
    assert!(error.is_wrong_type() && error.to_string().contains(QUEUE), "{error}");
    guard.release().await.unwrap();
    freed(&server).await;
    assert_eq!(server.admin().get(QUEUE).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn foreign_data_at_the_queue_prevent_no_release() {
    let (server, locker, guard) = held().await;
    server.admin().set(QUEUE, "theirs");
    guard.release().await.unwrap();
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    freed(&server).await;
    assert_eq!(server.admin().get(QUEUE).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn foreign_data_at_the_fence_counter_leave_no_lock() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.command::<()>(&["SET", KEY, "foreign", "NX", "PX", "2000"]);
    admin.del(FENCE);
    let wait = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).acquire());
    queued(&server, 1).await;
    admin.del(FENCE);
    admin.command::<()>(&["RPUSH", FENCE, "theirs"]);
    let bound = Duration::from_secs(2) + RECHECK;
    let error =
        within("foreign data at the fence counter", bound, wait).await.unwrap().unwrap_err();
    assert!(error.to_string().contains(FENCE), "{error}");
    is_over(&server).await;
    assert_eq!(admin.type_of(FENCE), "list");
}

#[tokio::test]
async fn an_uncountable_fence_counter_is_reported_and_untouched() {
    for theirs in ["text", "1.5", "9223372036854775807"] {
        let (server, locker, guard) = held().await;
        let waiter = tokio::spawn(locker.lock("k").wait_at_most(LIMIT).acquire());
        queued(&server, 1).await;
        let admin = server.admin();
        admin.set(FENCE, theirs);
        guard.release().await.unwrap();
        let error =
            within("an uncountable fence counter", RECHECK, waiter).await.unwrap().unwrap_err();
        assert!(error.to_string().contains(FENCE), "{error}");
        is_over(&server).await;
        assert_eq!(admin.get(FENCE).as_deref(), Some(theirs));
    }
}

#[tokio::test]
async fn a_hand_off_gives_the_fence_counter_an_expiry() {
    let (server, locker, guard) = held().await;
    let waiter = waiter(&locker);
    queued(&server, 1).await;
    let (admin, token) = (server.admin(), guard.fencing_token());
    admin.set(FENCE, "1");
    guard.release().await.unwrap();
    let next = within("a fence counter without an expiry", AT_ONCE, waiter).await.unwrap();
    assert!(next.fencing_token() > token);
    assert!(admin.pttl(FENCE) > 0);
    next.release().await.unwrap();
    is_over(&server).await;
}

async fn server_and_locker() -> (Server, Locker) {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    (server, locker)
}

/// A server with a holder of `k`, and a locker of its own for others.
async fn held() -> (Server, Locker, LockGuard) {
    let (server, locker) = server_and_locker().await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    (server, locker, guard)
}

fn kill_subscriptions(admin: &Admin) {
    assert!(admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]) > 0);
}

fn subscriptions(admin: &Admin) -> usize {
    admin.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]).lines().count()
}
