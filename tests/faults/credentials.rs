//! Credentials that come from a callback: when it is asked, and what becomes of calls where it fails.

mod failures;

use lockable_runtime::LockErrorKind;
use std::sync::{Arc, Mutex};

use lockable_runtime::{Credentials, LockError, Locker, LockerBuilder, Secret};
use lockable_tests::{Sentinels, Server, ServerBuilder, wait};

use crate::runtimes::two_threads;
use crate::support::{KEY, LIMIT, Runs, ample, everything};

/// A server whose user `app` has this password, and whose others have one that no test knows.
fn guarded(password: &str) -> ServerBuilder {
    let rules = format!("on >{password} ~* &* +@all");
    Server::builder().password("of-no-test").user("app", &rules)
}

/// Logs in as `app` with that password.
fn counted(builder: LockerBuilder, password: &'static str) -> (LockerBuilder, Runs) {
    let calls = Runs::default();
    let counter = calls.clone();
    let source = move || {
        counter.next();
        async move { Ok::<_, LockError>(Credentials::new("app", password)) }
    };
    (builder.credentials(Secret::from_fn(source)), calls)
}

async fn pair(locker: &Locker) {
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
}

/// Ends every connection of the user; the harness has a user of its own.
fn disconnect(server: &Server) {
    server.admin().command::<u64>(&["CLIENT", "KILL", "USER", "app"]);
}

#[tokio::test]
async fn each_opening_asks_once() {
    let server = guarded("word").start();
    let (builder, calls) = counted(ample(&server.url()), "word");
    let locker = builder.connect_lazy().unwrap();
    assert_eq!(calls.count(), 0);
    pair(&locker).await;
    pair(&locker).await;
    assert_eq!(calls.count(), 1);
    disconnect(&server);
    pair(&locker).await;
    assert_eq!(calls.count(), 2);
    let other = two_threads();
    other.spawn(async move { pair(&locker).await }).await.unwrap();
    assert_eq!(calls.count(), 3);
    other.shutdown_background();
}

#[tokio::test]
async fn the_subscription_of_waiters_asks_too() {
    let server = guarded("word").start();
    let (builder, calls) = counted(ample(&server.url()), "word");
    let locker = builder.connect().await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(locker.lock("k").acquire());
    let admin = server.admin();
    let subscribed = || admin.command::<Vec<String>>(&["PUBSUB", "CHANNELS", "lockable:*"]);
    wait::until_async(LIMIT, async || !subscribed().is_empty()).await;
    assert!(calls.count() >= 2);
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_check_asks_once_for_all_its_connections() {
    let server = guarded("word").start();
    let (builder, calls) = counted(ample(&server.url()), "word");
    let report = builder.connect_lazy().unwrap().check().await;
    assert!(report.is_ok(), "{report}");
    assert_eq!(calls.count(), 1);
}

/// Goal: a password that changes is followed, and nothing of the old one is used again.
/// Method: the server takes the new one alone from then on, and ends the connections of the old.
#[tokio::test]
async fn a_rotated_password_is_followed() {
    let server = guarded("word-1").start();
    let current = Arc::new(Mutex::new("word-1".to_owned()));
    let stored = Arc::clone(&current);
    let source = move || {
        let password = stored.lock().unwrap().clone();
        async move { Ok::<_, LockError>(Credentials::new("app", password)) }
    };
    let locker = ample(&server.url()).credentials(Secret::from_fn(source)).connect().await.unwrap();
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    let admin = server.admin();
    for number in 2..5 {
        let password = format!("word-{number}");
        let rule = format!(">{password}");
        admin.command::<()>(&["ACL", "SETUSER", "app", "resetpass", &rule]);
        *current.lock().unwrap() = password;
        disconnect(&server);
        guard.lease().extend(LIMIT).await.unwrap();
    }
    guard.release().await.unwrap();
    let stale = ample(&server.url_with("app", "word-1", 0)).connect().await;
    assert!(stale.unwrap_err().kind() == LockErrorKind::Refused);
}

#[tokio::test]
async fn a_callback_has_priority_over_the_url() {
    let server = guarded("word").unix_socket().start();
    let database = format!("{}?db=3", server.unix_url());
    let with_user = format!("{database}&user=none&pass=wrong");
    for url in [server.url_with("none", "wrong", 3), database, with_user] {
        let locker = counted(ample(&url), "word").0.connect().await.unwrap();
        let guard = locker.lock("k").acquire().await.unwrap();
        let admin = server.admin();
        admin.command::<()>(&["SELECT", "3"]);
        assert!(admin.get(KEY).is_some(), "{url}");
        assert!(admin.command::<String>(&["CLIENT", "LIST"]).contains("user=app"), "{url}");
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_default_user_takes_the_place_of_another() {
    let server = Server::builder().password("word").start();
    for credentials in [Credentials::password("word"), Credentials::new("", "word")] {
        let builder = ample(&server.url_with("none", "wrong", 0)).credentials(credentials);
        pair(&builder.connect().await.unwrap()).await;
    }
}

/// Goal: Sentinels and servers get what is theirs.
/// Method: each refuses what is the other's; the callback is asked for the connections to servers alone.
#[tokio::test]
async fn sentinels_have_credentials_of_their_own() {
    const SENTINEL: &str =
        "on >watch +sentinel|get-master-addr-by-name +subscribe +ping &+switch-master";
    let group = Sentinels::builder().user("app", "on >word ~* &* +@all").password("of-no-test");
    let group = group.sentinel_user("watcher", SENTINEL).sentinel_password("of-no-test").start();
    let (builder, calls) = counted(ample(&group.url()), "word");
    let error = builder.clone().connect().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("`LockerBuilder::sentinel_credentials`"), "{error}");
    let builder = builder.sentinel_credentials(Credentials::new("watcher", "watch"));
    let before = calls.count();
    let locker = builder.connect().await.unwrap();
    pair(&locker).await;
    // The caller's connection and the background's, which renews leases.
    assert_eq!(calls.count(), before + 2);
    let wrong = counted(ample(&group.url()), "canary").0;
    let wrong = wrong.sentinel_credentials(Credentials::new("watcher", "watch"));
    let error = wrong.connect().await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::Refused
            && error.to_string().contains("`LockerBuilder::credentials`"),
        "{error}"
    );
    assert!(!everything(&error).contains("canary"), "{error:?}");
}
