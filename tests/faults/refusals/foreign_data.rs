//! Other people's data at the names of locks, and tampering with the fence counter.

use lockable_runtime::Locker;
use lockable_tests::{Admin, Proxy, Server, wait};

use crate::support::{
    FENCE, KEY, LIMIT, Runs, connect, decorated, freed, second_request_held, server_and_proxy,
};

#[tokio::test]
async fn data_of_another_type_is_an_error_and_stays() {
    let data: [&[&str]; 5] = [
        &["RPUSH", KEY, "a", "b"],
        &["HSET", KEY, "field", "value"],
        &["SADD", KEY, "member"],
        &["ZADD", KEY, "1", "member"],
        &["XADD", KEY, "1-1", "field", "value"],
    ];
    let (server, admin, locker) = prepared().await;
    for command in data {
        admin.flush();
        admin.try_command(command).unwrap();
        let before = dump(&admin);
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert!(error.is_wrong_type() && !error.is_busy(), "{command:?}: {error:?}");
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
        assert!(error.to_string().contains("other data"), "{error}");
        assert_eq!((dump(&admin), admin.pttl(KEY)), (before, -1), "{command:?}");
    }
    drop(server);
}

#[tokio::test]
async fn a_text_of_another_program_is_another_holder() {
    let (_server, admin, locker) = prepared().await;
    for value in ["their token", "", "0"] {
        admin.set(KEY, value);
        assert!(locker.lock("k").try_run(async {}).await.unwrap().is_none());
        assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
        assert_eq!((admin.get(KEY).as_deref(), admin.pttl(KEY)), (Some(value), -1));
    }
    admin.del(KEY);
    locker.lock("k").try_run(async {}).await.unwrap().unwrap();
}

#[tokio::test]
async fn data_that_replaced_a_held_lock_outlives_its_release() {
    let (_server, admin, locker) = prepared().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    admin.del(KEY);
    admin.try_command(&["RPUSH", KEY, "a"]).unwrap();
    let before = dump(&admin);
    let error = guard.release().await.unwrap_err();
    assert!(error.is_wrong_type() || error.is_lost(), "{error:?}");
    assert_eq!(dump(&admin), before);
}

#[tokio::test]
async fn fencing_tokens_rise_although_the_counter_is_gone() {
    let (_server, admin, locker) = prepared().await;
    let mut newest = token(&locker).await;
    for _ in 0..20 {
        admin.del(FENCE);
        newest = assert_rises(&locker, newest).await;
        assert_fence_counter_expires(&admin);
    }
}

#[tokio::test]
async fn fencing_tokens_rise_after_a_flush_or_restart() {
    let (server, admin, locker) = prepared().await;
    let mut newest = token(&locker).await;
    admin.flush();
    newest = assert_rises(&locker, newest).await;
    server.restart();
    assert_rises(&locker, newest).await;
    assert_fence_counter_expires(&server.admin());
}

#[tokio::test]
async fn fencing_tokens_rise_although_the_counter_expired() {
    let (_server, admin, locker) = prepared().await;
    let newest = token(&locker).await;
    admin.command::<()>(&["PEXPIRE", FENCE, "1"]);
    wait::until(LIMIT, || admin.get(FENCE).is_none());
    assert_rises(&locker, newest).await;
    assert_fence_counter_expires(&admin);
}

/// Small fence counters, such as the one that was deleted between the two commands about it.
#[tokio::test]
async fn a_fence_counter_below_the_time_is_seeded() {
    let (_server, admin, locker) = prepared().await;
    let mut newest = token(&locker).await;
    for fence in ["0", "1", "42", "-7", "1700000000"] {
        admin.set(FENCE, fence);
        newest = assert_rises(&locker, newest).await;
        assert_fence_counter_expires(&admin);
    }
}

/// Goal: a call that finds the lock busy, and a known fence counter missing, leaves no fence counter
/// without an expiry.
#[tokio::test]
async fn a_busy_call_seeds_a_lost_fence_counter() {
    let (_server, admin, locker) = prepared().await;
    token(&locker).await;
    admin.flush();
    admin.command::<()>(&["SET", KEY, "another's", "PX", "60000"]);
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    assert_fence_counter_expires(&admin);
}

#[tokio::test]
async fn a_call_at_foreign_data_seeds_the_fence_counter() {
    let (_server, admin, locker) = prepared().await;
    token(&locker).await;
    admin.flush();
    admin.try_command(&["RPUSH", KEY, "a"]).unwrap();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_wrong_type());
    assert_fence_counter_expires(&admin);
}

/// Goal: the same where the connection breaks in between, so that the fence counter stays unseeded.
/// Method: the answer that would show it is lost; the call is repeated on a new connection.
#[tokio::test]
async fn a_fence_counter_is_seeded_after_a_broken_connection() {
    unseeded_and_cut(async |proxy| proxy.wait_reply_held(LIMIT).await).await;
}

/// Goal: the same where it is the second request that is lost.
/// Method: that one is held back when the connection is cut.
#[tokio::test]
async fn a_fence_counter_is_seeded_after_a_lost_seeding() {
    unseeded_and_cut(async |proxy| second_request_held(proxy).await).await;
}

/// A call finds the lock busy and a known fence counter missing, and its connection is cut then.
async fn unseeded_and_cut(then: impl AsyncFnOnce(&Proxy)) {
    let (server, proxy) = server_and_proxy();
    let (admin, locker) = (server.admin(), connect(&proxy.url()).await);
    token(&locker).await;
    admin.flush();
    admin.command::<()>(&["SET", KEY, "another's", "PX", "60000"]);
    proxy.hold_replies();
    let cut = async {
        then(&proxy).await;
        assert_eq!((admin.get(FENCE).as_deref(), admin.pttl(FENCE)), (Some("1"), -1));
        proxy.cut();
        proxy.release_requests();
        proxy.release_replies();
    };
    let (outcome, ()) = tokio::join!(locker.lock("k").try_acquire(), cut);
    assert!(outcome.unwrap().is_none());
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
    assert_eq!(token(&locker).await, ahead + 1);
    assert_eq!(token(&connect(&server.url()).await).await, ahead + 2);
    assert!(admin.pttl(FENCE) > 3_600_000, "{} ms", admin.pttl(FENCE));
}

#[tokio::test]
async fn a_fence_counter_without_a_number_is_an_error() {
    for fence in ["text", "9223372036854775807", "1.5"] {
        let (server, admin, locker) = prepared().await;
        admin.set(FENCE, fence);
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert!(!error.is_busy(), "{error:?}");
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
        freed(&server).await;
        assert_eq!(admin.get(FENCE).as_deref(), Some(fence));
    }
}

#[tokio::test]
async fn a_fence_counter_of_another_type_is_an_error() {
    let (server, admin, locker) = prepared().await;
    admin.try_command(&["RPUSH", FENCE, "a"]).unwrap();
    let runs = Runs::default();
    let error = decorated(&locker, &runs).await.unwrap_err();
    assert!(!error.is_busy(), "{error:?}");
    assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
    freed(&server).await;
    assert_eq!(admin.type_of(FENCE), "list");
    assert!(error.to_string().contains("lockable:fence:"), "{error}");
}

async fn prepared() -> (Server, Admin, Locker) {
    let server = Server::start();
    let (admin, locker) = (server.admin(), connect(&server.url()).await);
    (server, admin, locker)
}

async fn token(locker: &Locker) -> u64 {
    let guard = locker.lock("k").acquire().await.unwrap();
    let token = guard.fencing_token().into();
    guard.release().await.unwrap();
    token
}

/// Gives the newer token.
async fn assert_rises(locker: &Locker, newest: u64) -> u64 {
    let token = token(locker).await;
    assert!(token > newest, "{token} after {newest}");
    // Microseconds since 1970 have sixteen digits until the year 2286.
    assert_eq!(token.to_string().len(), 16, "{token}");
    token
}

fn assert_fence_counter_expires(admin: &Admin) {
    let pttl = admin.pttl(FENCE);
    assert!((590_000..=600_000).contains(&pttl), "{pttl}");
}

fn dump(admin: &Admin) -> Vec<u8> {
    admin.command(&["DUMP", KEY])
}
