//! A lock that is deleted from outside stops its body at once, long before its next renewal.

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::long_form;
use tokio::task::JoinSet;

use self::support::{end, held, hold, looks, most_looks, stopped, tracked, warm};
use crate::support::{LIMIT, LONG, SECOND, connect, now, start, until};

mod cluster;
mod reconnections;
mod refusals;
mod support;

#[tokio::test]
async fn a_deleted_lock_stops_its_body() {
    let (_server, locker, admin) = start().await;
    for _ in 0..long_form(1, 100) {
        let body = held(&locker, "k", &admin).await;
        admin.del("disLock:k");
        assert!(stopped(body).await.contains("it has no holder"));
    }
}

#[tokio::test]
async fn every_way_to_lose_a_lock_stops_its_body() {
    let ways: [(&str, &[&str], &str); 7] = [
        ("unlinked", &["UNLINK", "disLock:unlinked"], "it has no holder"),
        ("taken", &["SET", "disLock:taken", "another's"], "another holder"),
        ("renamed", &["RENAME", "disLock:renamed", "elsewhere"], "it has no holder"),
        ("shortened", &["PEXPIRE", "disLock:shortened", "100"], "it has no holder"),
        (
            "other",
            &["EVAL", "redis.call('DEL', KEYS[1])", "1", "disLock:other"],
            "it has no holder",
        ),
        ("flushed", &["FLUSHALL"], "it has no holder"),
        ("flushed too", &["FLUSHALL"], "it has no holder"),
    ];
    let (_server, locker, admin) = start().await;
    let bodies: Vec<_> = ways.iter().map(|(key, _, _)| hold(&locker, key)).collect();
    until(async || tracked(&admin) == ways.len() as u64).await;
    for (body, (_, way, why)) in bodies.into_iter().zip(ways) {
        admin.try_command(way).unwrap();
        let error = stopped(body).await;
        assert!(error.contains(why), "{way:?}: {error}");
    }
}

/// Goal: one write of the server's, and not a query for each.
#[tokio::test]
async fn many_deletions_share_their_commands() {
    let count = long_form(1_000, 10_000);
    let (_server, locker, admin) = start().await;
    let guards = crowd(&locker, count).await;
    until(async || tracked(&admin) == count as u64).await;
    admin.reset_statistics();
    let keys = admin.keys("disLock:*");
    let delete: Vec<_> = ["DEL"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    admin.command::<()>(&delete);
    let lost = async {
        for guard in &guards {
            assert!(guard.lease().lost().await.is_lost());
        }
    };
    tokio::time::timeout(LIMIT, lost).await.expect("all are lost before their next renewals");
    let looks = admin.command_calls("evalsha");
    assert!(looks <= 4 + count as u64 / 20, "{looks} commands for {count} deletions");
}

/// Locks that are renewed, a hundred acquired at a time.
async fn crowd(locker: &Locker, count: usize) -> Vec<LockGuard> {
    let mut guards = Vec::with_capacity(count);
    for start in (0..count).step_by(100) {
        let request = |n| locker.lock(format!("many:{n}")).renew();
        let calls: JoinSet<_> = (start..start + 100).map(|n| request(n).acquire()).collect();
        guards.extend(calls.join_all().await.into_iter().map(Result::unwrap));
    }
    guards
}

#[tokio::test]
async fn own_renewals_are_not_heard() {
    let (_server, locker, admin) = warm().await;
    let guard = locker.lock("k").expire(3 * SECOND).renew().acquire().await.unwrap();
    until(async || looks(&admin) > 0).await;
    // The first look is over when the next renewal is.
    let before = admin.command_calls("pexpire");
    until(async || admin.command_calls("pexpire") > before).await;
    admin.reset_statistics();
    until(async || admin.command_calls("pexpire") >= 2).await;
    guard.release().await.unwrap();
    // A renewal is one, and the release is one; a look would be another.
    assert_eq!(admin.command_calls("evalsha"), admin.command_calls("pexpire") + 1);
}

/// Goal: a renewal whose script the server does not know by its name is followed by a read all the same.
#[tokio::test]
async fn a_forgotten_script_does_not_end_tracking() {
    let (_server, locker, admin) = warm().await;
    let guard = locker.lock("k").expire(3 * SECOND).renew().acquire().await.unwrap();
    until(async || tracked(&admin) == 1).await;
    admin.command::<()>(&["SCRIPT", "FLUSH"]);
    let before = admin.command_calls("pexpire");
    until(async || admin.command_calls("pexpire") > before).await;
    assert_eq!(tracked(&admin), 1);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn extending_leads_to_few_looks() {
    let (_server, locker, admin) = warm().await;
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    until(async || tracked(&admin) == 1).await;
    admin.reset_statistics();
    let start = now();
    guard.lease().extend(2 * LONG).await.unwrap();
    until(async || looks(&admin) > 0).await;
    for times in 3..30 {
        guard.lease().extend(times * LONG).await.unwrap();
    }
    guard.release().await.unwrap();
    let looks = looks(&admin);
    assert!(looks <= most_looks(start), "{looks} looks");
}

#[tokio::test]
async fn a_lock_that_is_changed_in_a_loop_is_looked_at_seldom() {
    let (_server, locker, admin) = warm().await;
    let body = held(&locker, "k", &admin).await;
    let owner = admin.get("disLock:k").unwrap();
    admin.reset_statistics();
    let start = now();
    for _ in 0..2_000 {
        admin.set("disLock:k", &owner);
    }
    let looks = looks(&admin);
    assert!(looks <= most_looks(start), "{looks} looks");
    admin.del("disLock:k");
    stopped(body).await;
}

/// Goal: what a process reads for those that wait is not tracked, so no hand-off wakes another process.
#[tokio::test]
async fn waiting_calls_are_not_woken_by_tracking() {
    let (server, locker, admin) = warm().await;
    let body = held(&locker, "k", &admin).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let other = connect(&server.url()).await;
        waiting.push(tokio::spawn(other.lock("k").renew().run(async {})));
    }
    let queue = ["LLEN", "lockable:queue:{disLock:k}"];
    until(async || admin.command::<u64>(&queue) == 3).await;
    assert_eq!(tracked(&admin), 1);
    admin.reset_statistics();
    end(body).await;
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    assert_eq!(tracked(&admin), 0);
    // Where they hold it for longer than usual, each may look at its own lock; at others' there would be six looks.
    assert!(looks(&admin) <= 3);
}

#[tokio::test]
async fn what_is_not_renewed_is_not_tracked() {
    let (_server, locker, admin) = warm().await;
    let guard = locker.lock("unrenewed").acquire().await.unwrap();
    let body = held(&locker, "k", &admin).await;
    assert_eq!(tracked(&admin), 1);
    guard.release().await.unwrap();
    end(body).await;
}

/// Goal: what others do with a key that no one holds here any more costs nothing.
#[tokio::test]
async fn a_released_lock_is_not_looked_at() {
    let (_server, locker, admin) = warm().await;
    let body = held(&locker, "other", &admin).await;
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    until(async || tracked(&admin) == 2).await;
    admin.reset_statistics();
    // Over the caller's connection, so that the other one hears of it.
    guard.release().await.unwrap();
    admin.set("disLock:k", "another's");
    admin.del("disLock:k");
    // What was heard of it comes before this.
    admin.del("disLock:other");
    stopped(body).await;
    // The release, and one look.
    assert_eq!(admin.command_calls("evalsha"), 2);
}
