//! Releases by one command, `DELEX` of Redis or `DELIFEQ` of Valkey, which must pass no waiter over.

use std::time::Duration;

use lockable_runtime::admin::{Forced, Revoked};
use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Admin, Server, wait};
use tokio::task::JoinSet;

use super::support::{
    are_served, connect, connect_rechecking, in_queue, is_over, is_served, is_served_last, queued,
    release_last, renewed, waiter,
};
use crate::support::{KEY, LIMIT, LONG};

/// How often the server ran the command.
fn deletions(admin: &Admin) -> u64 {
    admin.command_calls("delex") + admin.command_calls("delifeq")
}

/// A server that has the command, and a locker with a connection to it and a seeded fence counter.
async fn server_and_locker() -> (Server, Locker) {
    let server = Server::builder().deletes().start();
    let locker = connect(&server.url()).await;
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    server.admin().reset_statistics();
    (server, locker)
}

/// The same with a holder, and another locker for waiters.
async fn held() -> (Server, Locker, LockGuard) {
    let (server, locker) = server_and_locker().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let others = connect(&server.url()).await;
    (server, others, guard)
}

fn owner(server: &Server) -> String {
    server.admin().get(KEY).unwrap()
}

#[tokio::test]
async fn a_lock_without_waiters_is_released_by_one_command() {
    let (server, locker) = server_and_locker().await;
    for _ in 0..10 {
        locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    }
    let admin = server.admin();
    assert_eq!((deletions(&admin), admin.command_calls("evalsha")), (10, 0));
    is_over(&server).await;
}

#[tokio::test]
async fn many_locks_are_released_by_a_command_each() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let hold = |n: u32| {
        let request = locker.lock(format!("{{k}}:{n}"));
        async move { request.acquire().await.unwrap().release().await.unwrap() }
    };
    (0..64).map(hold).collect::<JoinSet<_>>().join_all().await;
    assert_eq!(deletions(&admin), 64);
    assert_eq!(admin.keys("disLock:*"), [""; 0]);
}

#[tokio::test]
async fn a_waiter_marks_the_lock_and_is_handed_it() {
    let (server, others, guard) = held().await;
    let unmarked = owner(&server);
    let first = in_queue(&server, &others).await;
    assert_eq!(owner(&server), format!("+{unmarked}"));
    let third = connect(&server.url()).await;
    let second = in_queue(&server, &third).await;
    assert_eq!(owner(&server), format!("+{unmarked}"), "it is marked once");
    guard.release().await.unwrap();
    let first = wait::ends(first).await.unwrap();
    assert_eq!(owner(&server).as_bytes()[16], b'.', "a lock from the queue");
    first.release().await.unwrap();
    is_served_last(&server, second).await;
    assert_eq!(deletions(&server.admin()), 1, "the one that the mark has refused");
}

/// A permit has no mark, so that the command would pass over those who wait.
#[tokio::test]
async fn a_permit_is_not_released_by_the_command() {
    let (server, locker) = server_and_locker().await;
    let permit = |locker: &Locker| locker.lock("p").permits(2).wait(LONG).acquire();
    let (first, second) = (permit(&locker).await.unwrap(), permit(&locker).await.unwrap());
    let other = connect(&server.url()).await;
    let waiter = tokio::spawn(permit(&other));
    let (admin, queue) = (server.admin(), "lockable:queue:#:disLock:{p}");
    let places = || admin.command::<u64>(&["LLEN", queue]);
    wait::until_async(LIMIT, async || places() == 1).await;
    first.release().await.unwrap();
    let third = wait::ends(waiter).await.unwrap().unwrap();
    second.release().await.unwrap();
    third.release().await.unwrap();
    assert_eq!(deletions(&admin), 0);
}

#[tokio::test]
async fn a_marked_lock_is_renewed_and_extended() {
    let (server, locker) = server_and_locker().await;
    let lock = locker.lock("k").expire(Duration::from_secs(6)).renew();
    let guard = lock.acquire().await.unwrap();
    let before = locker.inspect("k").await.unwrap().unwrap().id();
    let waiter = in_queue(&server, &connect(&server.url()).await).await;
    assert!(owner(&server).starts_with('+'));
    for _ in 0..2 {
        renewed(&guard).await;
    }
    guard.lease().extend(LONG).await.unwrap();
    assert!(guard.lease().is_held() && server.admin().pttl(KEY) > 30_000);
    assert_eq!(locker.inspect("k").await.unwrap().unwrap().id(), before);
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

/// The form of the owner token says so to a waiter, and no command may delete the lock.
#[tokio::test]
async fn a_lock_that_is_kept_is_done_to_its_waiter() {
    let (server, locker) = server_and_locker().await;
    let others = connect_rechecking(&server.url()).await;
    let guard = locker.lock("k").once().acquire().await.unwrap();
    let waiting = tokio::spawn(others.lock("k").once().acquire());
    queued(&server, 1).await;
    guard.keep(LONG).await.unwrap();
    let error = wait::ends(waiting).await.unwrap().unwrap_err();
    assert!(error.is_done(), "{error}");
    assert!(locker.lock("k").once().acquire().await.unwrap_err().is_done());
    server.admin().del(KEY);
}

#[tokio::test]
async fn a_marked_lock_becomes_a_ticket() {
    let (server, others, guard) = held().await;
    let waiter = in_queue(&server, &others).await;
    assert!(owner(&server).starts_with('+'));
    let ticket = guard.into_ticket(LONG).await.unwrap();
    assert!(owner(&server).starts_with('@') && !waiter.is_finished());
    let guard = others.redeem(ticket).acquire().await.unwrap();
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

#[tokio::test]
async fn an_operator_hands_a_marked_lock_off() {
    let (server, others, guard) = held().await;
    let waiters = three(&server).await;
    taken_away(&others).await;
    are_served(waiters).await;
    guard.release().await.unwrap_err();
    is_over(&server).await;
}

/// Goal: the operator's release looks at the queue by itself. Method: the mark is taken away, as if a newcomer had the
/// lock; whether a waiter has written it again before makes no difference.
#[tokio::test]
async fn an_operator_hands_an_unmarked_lock_off() {
    let (server, others, guard) = held().await;
    let unmarked = owner(&server);
    let waiters = three(&server).await;
    server.admin().command::<()>(&["SET", KEY, &unmarked, "KEEPTTL"]);
    taken_away(&others).await;
    are_served(waiters).await;
    assert_eq!(deletions(&server.admin()), 0);
    guard.release().await.unwrap_err();
}

/// Three lockers with a waiter each, in the queue one behind the other: only a message serves the first.
async fn three(server: &Server) -> Vec<tokio::task::JoinHandle<LockGuard>> {
    let mut waiters = vec![in_queue(server, &connect(&server.url()).await).await];
    for _ in 0..2 {
        waiters.push(in_queue(server, &connect_rechecking(&server.url()).await).await);
    }
    waiters
}

async fn taken_away(operator: &Locker) {
    let admin = operator.admin();
    let held = admin.holder("k").await.unwrap().unwrap();
    assert_eq!(admin.force_release(&held, "stuck").await.unwrap(), Forced::Released);
}

#[tokio::test]
async fn a_revoked_holder_of_a_marked_lock_hands_it_off() {
    let (server, locker) = server_and_locker().await;
    let lock = locker.lock("k").renew();
    let body = tokio::spawn(lock.run(std::future::pending::<()>()));
    wait::until_async(LIMIT, async || server.admin().get(KEY).is_some()).await;
    let others = connect(&server.url()).await;
    let waiter = in_queue(&server, &others).await;
    let admin = others.admin();
    let held = admin.holder("k").await.unwrap().unwrap();
    // A holder listens a little after its grant.
    let is_released =
        async || matches!(admin.revoke(&held, "stuck", LONG).await, Ok(Revoked::Released { .. }));
    wait::until_async(LIMIT, is_released).await;
    assert!(body.await.unwrap().unwrap_err().is_revoked());
    is_served_last(&server, waiter).await;
}

/// Goal: a refused command for each lock that was granted before the first refusal.
#[tokio::test]
async fn the_command_is_refused_once() {
    let (server, url) = without_the_right();
    let locker = connect(&url).await;
    let mut guards = Vec::new();
    for n in 0..3 {
        guards.push(locker.lock(format!("{{k}}:{n}")).acquire().await.unwrap());
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(rejections(&server.admin()), 1);
    is_over(&server).await;
}

/// A server that has the command, and the URL of a user who may not send it.
fn without_the_right() -> (Server, String) {
    let server = Server::builder().deletes().user("app", "on >secret ~* &* +@all").start();
    let admin = server.admin();
    for name in ["delex", "delifeq"] {
        // Each server knows one of them.
        drop(admin.try_command(&["ACL", "SETUSER", "app", &format!("-{name}")]));
    }
    let url = server.url_with("app", "secret", 0);
    (server, url)
}

/// How many commands the server has refused.
fn rejections(admin: &Admin) -> u64 {
    let statistics = admin.info("commandstats");
    let counts = statistics.split("rejected_calls=").skip(1);
    counts.filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn without_the_right_the_script_releases() {
    let (server, url) = without_the_right();
    let (admin, locker) = (server.admin(), connect(&url).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    assert_eq!(owner(&server).as_bytes()[16], b'-', "nothing is refused before a release");
    let waiter = in_queue(&server, &connect(&url).await).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    assert_eq!(owner(&server).as_bytes()[16], b'.', "it is known that the command is refused");
    release_last(&server, guard).await;
    assert_eq!((rejections(&admin), deletions(&admin)), (1, 0));
}

#[tokio::test]
async fn other_holders_and_other_data_are_left_alone() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let others: [&[&str]; 3] =
        [&["SET", KEY, "another's"], &["SET", KEY, "+another's"], &["RPUSH", KEY, "another's"]];
    for other in others {
        let guard = locker.lock("k").acquire().await.unwrap();
        admin.del(KEY);
        admin.try_command(other).unwrap();
        assert!(guard.release().await.unwrap_err().is_taken());
        assert_eq!(admin.command::<u32>(&["EXISTS", KEY]), 1);
        admin.del(KEY);
    }
    let guard = locker.lock("k").acquire().await.unwrap();
    admin.del(KEY);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_lost() && !error.is_taken(), "{error}");
}

/// Values that are no token of a holder who releases by the command.
#[tokio::test]
async fn only_what_the_command_would_delete_is_marked() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let least = Duration::from_millis(50);
    let kept = locker.lock("k").min_hold(least).acquire().await.unwrap();
    let unmarked = owner(&server);
    let others = connect_rechecking(&server.url()).await;
    let waiter = in_queue(&server, &others).await;
    assert_eq!(owner(&server), unmarked);
    kept.release().await.unwrap();
    is_served_last(&server, waiter).await;
    // The second is as a version without the command writes it, the others as other programs do.
    for value in ["another's", "0123456789abcdef.1750000000000000", "0123456789ABCDEF-1"] {
        admin.command::<()>(&["SET", KEY, value, "PX", "300000"]);
        let waiter = self::waiter(&others);
        queued(&server, 1).await;
        assert_eq!(admin.get(KEY).as_deref(), Some(value));
        admin.del(KEY);
        is_served(waiter).await;
    }
}

/// Goal: a full server lets a waiter that is in the queue mark a lock. Method: the mark is taken away, and the next
/// request of the waiter writes it again.
#[tokio::test]
async fn a_full_server_lets_a_waiter_mark_the_lock() {
    let (server, _others, guard) = held().await;
    let unmarked = owner(&server);
    let waiter = in_queue(&server, &connect_rechecking(&server.url()).await).await;
    let admin = server.admin();
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    admin.command::<()>(&["SET", KEY, &unmarked, "KEEPTTL"]);
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let is_marked = async || owner(&server) == format!("+{unmarked}");
    wait::until_async(LIMIT, is_marked).await;
    admin.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

/// Goal: what a process of a former version left is harmless. Method: a lock, a queue and a fence counter as it wrote
/// them: its lock is waited for until it ends, and its entry in the queue is passed over.
#[tokio::test]
async fn what_a_former_version_left_is_harmless() {
    let server = server_and_locker().await.0;
    let admin = server.admin();
    let left = "0123456789abcdef.1750000000000000";
    admin.command::<()>(&["SET", KEY, left, "PX", "300"]);
    let entry = format!("1000 fedcba9876543210.17500000000000000000000001 {left}");
    admin.command::<()>(&["RPUSH", super::support::QUEUE, &entry]);
    let locker = connect_rechecking(&server.url()).await;
    is_served(waiter(&locker)).await;
    let guard = wait::ends(locker.lock("k").acquire()).await.unwrap();
    release_last(&server, guard).await;
}
