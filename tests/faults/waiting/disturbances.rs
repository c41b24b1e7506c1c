//! Messages, subscriptions, servers and keys that are lost while a call waits.

use lockable_runtime::{LockError, LockErrorKind, LockGuard, LockerBuilder};
use lockable_tests::{Admin, wait};
use redis::Value;
use rstest::rstest;
use tokio::task::JoinHandle;

use super::support::{
    QUEUE, ample, are_served, call, connect_rechecking, held, held_beside, held_beside_proxy,
    in_queue, is_over, is_served, is_served_last, queued, rechecking, release_last, server_and,
    server_and_locker, waited_for, waited_for_by,
};
use crate::support::{FENCE, KEY, LIMIT, LONG, freed, patient};

#[rstest]
#[case::a_killed_subscription(&["CLIENT", "KILL", "TYPE", "pubsub"], rechecking)]
#[case::a_deleted_queue(&["DEL", QUEUE], rechecking)]
#[case::flushed_scripts(&["SCRIPT", "FLUSH"], ample)]
#[tokio::test]
async fn a_loss_costs_a_waiter_at_most_one_recheck(
    #[case] loss: &[&str],
    #[case] builder: fn(&str) -> LockerBuilder,
) {
    let (server, guard, waiter) = waited_for_by(builder).await;
    lose(&server.admin(), loss);
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

/// A server drops a subscriber for which more waits than it may keep.
#[tokio::test]
async fn a_dropped_subscriber_costs_at_most_one_recheck() {
    let (server, guard, waiter) = waited_for_by(rechecking).await;
    let admin = server.admin();
    let channels = admin.command::<Vec<String>>(&["PUBSUB", "CHANNELS", "lockable:grant:*"]);
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "pubsub 1kb 1kb 1"];
    admin.command::<()>(&limit);
    admin.command::<u64>(&["PUBLISH", &channels[0], &"x".repeat(64 * 1024)]);
    wait::until_async(LIMIT, async || server.log().contains("output buffer limits")).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

#[rstest]
#[case::flushed_data(&["FLUSHALL"])]
#[case::a_deleted_lock(&["DEL", KEY])]
#[tokio::test]
async fn a_lost_lock_costs_at_most_one_recheck(#[case] loss: &[&str]) {
    let (server, guard, waiter) = waited_for_by(rechecking).await;
    lose(&server.admin(), loss);
    is_served(waiter).await;
    assert!(guard.release().await.unwrap_err().is_lost());
    is_over(&server).await;
}

#[rstest]
#[case::with_a_lease(&["SET", KEY, "foreign", "PX", "300000"])]
#[case::without_an_end(&["SET", KEY, "foreign"])]
#[tokio::test]
async fn a_foreign_release_costs_at_most_one_recheck(#[case] acquire: &[&str]) {
    let (server, locker) = server_and(rechecking).await;
    server.admin().command::<()>(acquire);
    let waiter = in_queue(&server, &locker).await;
    server.admin().del(KEY);
    is_served_last(&server, waiter).await;
}

/// The subscription is silent until it is taken for dead, and no other one is confirmed.
#[tokio::test]
async fn messages_lost_for_long_cost_at_most_one_recheck() {
    let (server, proxy, _locker, guard) = held_beside_proxy().await;
    // It takes as long as the command deadline, too.
    let locker = patient(&proxy.url()).connect().await.unwrap();
    let request = locker.lock("k").wait(LONG);
    let waiter = tokio::spawn(async move { request.acquire().await.unwrap() });
    queued(&server, 1).await;
    proxy.hold_messages();
    proxy.wait_for_command("SUBSCRIBE", 2, LIMIT).await;
    // The line asks when its subscription has ended, and again without another one.
    proxy.wait_for_command("EVALSHA", proxy.commands("EVALSHA") + 2, LIMIT).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

#[tokio::test]
async fn an_unconfirmed_subscription_costs_at_most_one_recheck() {
    let (server, proxy, _locker, guard) = held_beside_proxy().await;
    let locker = connect_rechecking(&proxy.url()).await;
    proxy.hold_messages();
    let waiter = in_queue(&server, &locker).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

#[tokio::test]
async fn a_restart_without_data_costs_little() {
    let (server, _lost, one) = waited_for_by(rechecking).await;
    let two = in_queue(&server, &connect_rechecking(&server.url()).await).await;
    server.restart();
    are_served([one, two]).await;
    is_over(&server).await;
}

#[tokio::test]
async fn foreign_data_at_the_lock_are_reported_and_untouched() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.command::<()>(&["RPUSH", KEY, "theirs"]);
    assert!(fails_about(KEY, call(&locker)).await.kind() == LockErrorKind::WrongType);
    assert_eq!(admin.command::<Vec<String>>(&["LRANGE", KEY, "0", "-1"]), ["theirs"]);
    assert_eq!(admin.keys("lockable:queue:*"), [""; 0]);
}

#[tokio::test]
async fn foreign_data_during_a_wait_are_reported_and_untouched() {
    let (server, locker, guard) = held_beside(rechecking).await;
    let call = call(&locker);
    queued(&server, 1).await;
    let admin = server.admin();
    admin.del(KEY);
    admin.command::<()>(&["RPUSH", KEY, "theirs"]);
    assert!(fails_about(KEY, call).await.kind() == LockErrorKind::WrongType);
    assert!(guard.release().await.unwrap_err().is_lost());
    wait::until_async(LIMIT, async || admin.keys("lockable:queue:*").is_empty()).await;
    assert_eq!(admin.command::<Vec<String>>(&["LRANGE", KEY, "0", "-1"]), ["theirs"]);
}

#[tokio::test]
async fn foreign_data_at_the_queue_prevent_no_release() {
    let (server, locker, guard) = held().await;
    server.admin().set(QUEUE, "theirs");
    assert!(fails_about(QUEUE, call(&locker)).await.kind() == LockErrorKind::WrongType);
    guard.release().await.unwrap();
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    freed(&server).await;
    assert_eq!(server.admin().get(QUEUE).as_deref(), Some("theirs"));
}

#[tokio::test]
async fn foreign_data_at_the_fence_counter_leave_no_lock() {
    let (server, locker) = server_and(rechecking).await;
    let admin = server.admin();
    admin.set(KEY, "foreign");
    let call = call(&locker);
    queued(&server, 1).await;
    admin.del(FENCE);
    admin.command::<()>(&["RPUSH", FENCE, "theirs"]);
    admin.del(KEY);
    fails_about(FENCE, call).await;
    is_over(&server).await;
    assert_eq!(admin.type_of(FENCE), "list");
}

#[rstest]
#[tokio::test]
async fn an_uncountable_fence_counter_is_reported_and_untouched(
    #[values("text", "1.5", "9223372036854775807")] theirs: &str,
) {
    let (server, locker, guard) = held_beside(rechecking).await;
    let call = call(&locker);
    queued(&server, 1).await;
    let admin = server.admin();
    admin.set(FENCE, theirs);
    guard.release().await.unwrap();
    fails_about(FENCE, call).await;
    is_over(&server).await;
    assert_eq!(admin.get(FENCE).as_deref(), Some(theirs));
}

#[tokio::test]
async fn a_hand_off_gives_the_fence_counter_an_expiry() {
    let (server, guard, waiter) = waited_for().await;
    let (admin, token) = (server.admin(), guard.lease().fencing_token());
    admin.set(FENCE, "1");
    guard.release().await.unwrap();
    let next = wait::ends(waiter).await.unwrap();
    assert!(next.lease().fencing_token() > token);
    assert!(admin.pttl(FENCE) > 0);
    release_last(&server, next).await;
}

/// The error of the call, which names this key, and comes before the wait limit.
async fn fails_about(key: &str, call: JoinHandle<Result<LockGuard, LockError>>) -> LockError {
    let error = call.await.unwrap().unwrap_err();
    assert!(!error.is_wait_limit_reached() && error.to_string().contains(key), "{error}");
    error
}

/// There was something to lose.
fn lose(admin: &Admin, command: &[&str]) {
    assert_ne!(admin.try_command(command).unwrap(), Value::Int(0));
}
