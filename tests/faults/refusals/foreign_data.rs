//! Other people's data at the names of locks, and tampering with the fence counter.

use std::time::Duration;

use lockable_runtime::__internals::Verbs;
use lockable_runtime::{LockErrorKind, Locker};
use lockable_tests::{Admin, Server, wait};
use rstest::rstest;

use crate::support::{
    FENCE, KEY, LIMIT, LONG, Runs, connect_ample, decorated, freed, second_request_held,
    server_and_proxy,
};
use crate::waiting::support::QUEUE;

#[tokio::test]
async fn data_of_another_type_is_an_error_and_stays() {
    let data: [&[&str]; 3] = [
        &["RPUSH", KEY, "a", "b"],
        &["HSET", KEY, "field", "value"],
        &["XADD", KEY, "1-1", "field", "value"],
    ];
    let (_server, admin, locker) = prepared().await;
    for command in data {
        admin.flush();
        admin.try_command(command).unwrap();
        let before = dump(&admin, KEY);
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert!(
            error.kind() == LockErrorKind::WrongType && !error.is_busy(),
            "{command:?}: {error:?}"
        );
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
        assert!(error.to_string().contains("other data"), "{error}");
        assert_eq!((dump(&admin, KEY), admin.pttl(KEY)), (before, -1), "{command:?}");
    }
}

#[tokio::test]
async fn a_text_of_another_program_is_another_holder() {
    let (_server, admin, locker) = prepared().await;
    for value in ["their token", "", "0"] {
        admin.set(KEY, value);
        assert!(locker.lock("k").try_acquire().await.unwrap_err().is_busy());
        assert_eq!((admin.get(KEY).as_deref(), admin.pttl(KEY)), (Some(value), -1));
    }
    admin.del(KEY);
    locker.lock("k").try_run(async {}).await.unwrap();
}

/// Also one that is small, as after a deletion between the two commands about it.
#[tokio::test]
async fn fencing_tokens_rise_whatever_becomes_of_the_counter() {
    let changes: [&[&str]; 6] = [
        &["DEL", FENCE],
        &["PEXPIRE", FENCE, "1"],
        &["FLUSHALL"],
        &["SET", FENCE, "0"],
        &["SET", FENCE, "-7"],
        &["SET", FENCE, "1700000000"],
    ];
    let (_server, admin, locker) = prepared().await;
    let mut newest = token(&locker).await;
    for change in changes {
        admin.try_command(change).unwrap();
        wait::until(LIMIT, || admin.pttl(FENCE) < 0);
        let next = token(&locker).await;
        assert!(next > newest, "{next} after {newest}: {change:?}");
        // Microseconds since 1970 have sixteen digits until the year 2286.
        assert_eq!(next.to_string().len(), 16, "{next}");
        assert_fence_counter_expires(&admin);
        newest = next;
    }
}

/// Goal: a call that finds the lock busy or other data, and a known fence counter missing, leaves no fence counter
/// without an expiry.
#[tokio::test]
async fn a_call_in_vain_seeds_a_lost_fence_counter() {
    for command in [&["SET", KEY, "another's", "PX", "60000"][..], &["RPUSH", KEY, "a"]] {
        let (_server, admin, locker) = prepared().await;
        token(&locker).await;
        admin.flush();
        admin.try_command(command).unwrap();
        let outcome = locker.lock("k").try_acquire().await;
        assert!(outcome.is_err(), "{command:?}");
        assert_fence_counter_expires(&admin);
    }
}

/// Goal: the same where the connection breaks in between, so that the fence counter stays unseeded.
/// Method: the answer that would show it is lost, or the request that would seed it; the call is repeated on a new
/// connection.
#[rstest]
#[case::answer(false)]
#[case::seeding(true)]
#[tokio::test]
async fn a_fence_counter_is_seeded_after_a_lost(#[case] seeding: bool) {
    let (server, proxy) = server_and_proxy();
    let (admin, locker) = (server.admin(), connect_ample(&proxy.url()).await);
    token(&locker).await;
    admin.flush();
    admin.command::<()>(&["SET", KEY, "another's", "PX", "60000"]);
    proxy.hold_replies();
    let cut = async {
        if seeding {
            second_request_held(&proxy).await;
        } else {
            proxy.wait_reply_held(LIMIT).await;
        }
        assert_eq!((admin.get(FENCE).as_deref(), admin.pttl(FENCE)), (Some("1"), -1));
        proxy.cut();
        proxy.release_requests();
        proxy.release_replies();
    };
    let (outcome, ()) = tokio::join!(locker.lock("k").try_acquire(), cut);
    assert!(outcome.unwrap_err().is_busy());
    assert_fence_counter_expires(&admin);
}

/// Goal: a clock that was set back, or that of a promoted server that is behind, makes no token sink:
/// the fence counter stays until the time has reached it.
/// Method: one locker knows the fence counter, and another one meets it.
#[tokio::test]
async fn a_fence_counter_ahead_of_time_is_incremented() {
    let (server, admin, locker) = prepared().await;
    let newest = token(&locker).await;
    let ahead = newest + 3_600_000_000;
    admin.command::<()>(&["SET", FENCE, &ahead.to_string(), "PX", "4200000"]);
    let other = connect_ample(&server.url()).await;
    assert_eq!(token(&locker).await, ahead + 1);
    assert_eq!(token(&other).await, ahead + 2);
    assert!(admin.pttl(FENCE) > 3_600_000, "{} ms", admin.pttl(FENCE));
}

#[tokio::test]
async fn a_fence_counter_without_a_number_is_an_error() {
    let data: [&[&str]; 4] = [
        &["SET", FENCE, "text"],
        &["SET", FENCE, "9223372036854775807"],
        &["SET", FENCE, "1.5"],
        &["RPUSH", FENCE, "a"],
    ];
    for command in data {
        let (server, admin, locker) = prepared().await;
        admin.try_command(command).unwrap();
        let (before, runs) = (dump(&admin, FENCE), Runs::default());
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert!(!error.is_busy() && error.to_string().contains("lockable:fence:"), "{error:?}");
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
        freed(&server).await;
        assert_eq!(dump(&admin, FENCE), before, "{command:?}");
    }
}

/// A call that waits at the place of another one's release is put back where its lock cannot be counted.
#[tokio::test]
async fn a_queue_beside_such_a_fence_counter_has_an_end() {
    let server = Server::start();
    let (admin, verbs) = (server.admin(), Verbs::open_impatient(&server.url(), LONG).unwrap());
    let [held, next] = [(); 2].map(|()| verbs.attempt(KEY, LONG, None).unwrap());
    verbs.acquire(&held).await.unwrap().expect("the lock is free");
    admin.set(FENCE, "text");
    let (_, granted) = verbs.release(&held, Some(&next), Duration::ZERO).await.unwrap();
    assert!(granted.is_none() && admin.get(KEY).is_none());
    let waiting = format!("1000 {}", next.owner());
    assert_eq!(admin.command::<Vec<String>>(&["LRANGE", QUEUE, "0", "-1"]), [waiting]);
    assert!((1..=30_000).contains(&admin.pttl(QUEUE)), "{} ms", admin.pttl(QUEUE));
}

async fn prepared() -> (Server, Admin, Locker) {
    let server = Server::start();
    let (admin, locker) = (server.admin(), connect_ample(&server.url()).await);
    (server, admin, locker)
}

async fn token(locker: &Locker) -> u64 {
    let guard = locker.lock("k").acquire().await.unwrap();
    let token = guard.lease().fencing_token().into();
    guard.release().await.unwrap();
    token
}

fn assert_fence_counter_expires(admin: &Admin) {
    let left = Duration::from_millis(admin.pttl(FENCE).try_into().expect("it ends"));
    // It lives for ten leases.
    assert!(left + LIMIT > 10 * LONG && left <= 10 * LONG, "{left:?}");
}

fn dump(admin: &Admin, key: &str) -> Vec<u8> {
    admin.command(&["DUMP", key])
}
