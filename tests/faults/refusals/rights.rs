//! Passwords and rights: what is missing is named, and nothing secret is shown.

use std::sync::mpsc::channel;
use std::time::Duration;

use lockable_runtime::__internals::Verbs;
use lockable_runtime::LockErrorKind;
use lockable_runtime::{LockError, Locker};
use lockable_tests::{Server, wait};
use tracing::Level;

use crate::events;
use crate::support::{
    FENCE, KEY, LIMIT, LONG, Runs, acl_rights, ample, connect_ample, decorated, everything, freed,
    now,
};
use crate::waiting::support::{self as waiting, QUEUE};

const PASSWORD: &str = "s3cr3t-w0rd";

#[tokio::test]
async fn a_wrong_login_is_refused_and_not_shown() {
    let rules = format!("on >right {}", acl_rights().join(" "));
    let server = Server::builder().password("right").user("app", &rules).start();
    let urls = [
        (server.url(), "password"),
        (server.url_with("", PASSWORD, 0), "password"),
        (server.url_with("app", PASSWORD, 0), "user and password"),
        (server.url_with("absent", PASSWORD, 0), "user and password"),
    ];
    for (url, words) in urls {
        assert_refused(&ample(&url).connect().await.unwrap_err(), words);
        let locker = ample(&url).connect_lazy().unwrap();
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert_refused(&error, words);
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
        let shown = format!("{locker:?} {:?}", Locker::builder().url(&url));
        assert!(!shown.contains(PASSWORD), "{shown}");
    }
}

#[tokio::test]
async fn an_unneeded_password_is_not_shown() {
    let server = Server::start();
    match ample(&server.url_with("", PASSWORD, 0)).connect().await {
        // The default user of a server without passwords takes any.
        Ok(locker) => locker.lock("k").try_run(async {}).await.unwrap(),
        Err(error) => assert_refused(&error, "password"),
    }
}

#[tokio::test]
async fn a_changed_password_is_refused_at_the_next_connection() {
    let server = Server::builder().password(PASSWORD).start();
    let locker = connect_ample(&server.url_with("", PASSWORD, 0)).await;
    let admin = server.admin();
    admin.command::<()>(&["CONFIG", "SET", "requirepass", "changed"]);
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_refused(&locker.lock("k").acquire().await.unwrap_err(), "password");
}

#[tokio::test]
async fn a_user_who_may_not_name_scripts_can_lock() {
    let server = server_without(&["+script|exists", "+evalsha"]);
    let locker = connect_ample(&url(&server)).await;
    locker.lock("k").try_acquire().await.unwrap().release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

/// Goal: a user that is refused leaves nothing behind, however often it tries, and whatever it may not do. A new right
/// counts at the next call.
#[tokio::test]
async fn a_missing_right_is_named_before_a_body_runs() {
    let rights: [(&[&str], &str); 17] = [
        (&["+set"], "set"),
        (&["+incr"], "incr"),
        (&["+time"], "time"),
        (&["+evalsha", "+eval"], "eval"),
        (&["+get"], "get"),
        (&["+del"], "del"),
        (&["+pexpire"], "pexpire"),
        (&["+rpush"], "rpush"),
        (&["+lpop"], "lpop"),
        (&["+lindex"], "lindex"),
        (&["+lpos"], "lpos"),
        (&["+lrem"], "lrem"),
        (&["~disLock:*"], "~disLock:*"),
        (&["~lockable:*"], "lockable:"),
        (&["+pexpire", "+del"], "del"),
        (&["+pexpire", "+del", "+time"], "time"),
        (&["+pexpire", "+del", "+evalsha", "+eval"], "eval"),
    ];
    for (missing, name) in rights {
        let server = server_without(missing);
        let locker = ample(&url(&server)).connect_lazy().unwrap();
        let runs = Runs::default();
        for _ in 0..3 {
            let error = decorated(&locker, &runs).await.expect_err(name);
            assert_refused(&error, name);
            assert_eq!((error.key(), runs.count()), (Some(KEY), 0), "{missing:?}");
        }
        set_rights(&server, &acl_rights());
        decorated(&locker, &runs).await.unwrap();
        let admin = server.admin();
        assert!(admin.pttl(FENCE) > 0 && runs.count() == 1, "{missing:?}");
        // Where nothing may be deleted, what the connection was tried with ends by itself.
        let left = || admin.keys("*").into_iter().filter(|key| !key.starts_with("lockable:fence:"));
        wait::until_async(LIMIT, async || left().count() == 0).await;
    }
}

/// Goal: no call waits in silence for a message that it may not hear.
#[tokio::test]
async fn without_the_right_to_subscribe_calls_poll_and_that_is_logged() {
    events::listen();
    for right in ["+subscribe", "&lockable:*"] {
        let server = server_without(&[right]);
        let locker = waiting::rechecking(&url(&server)).connect().await.unwrap();
        let guard = locker.lock("k").acquire().await.unwrap();
        let waiter = waiting::in_queue(&server, &connect_ample(&url(&server)).await).await;
        let words = [server.addr().to_string(), "subscribe".to_owned(), "once a second".to_owned()];
        let words = words.each_ref().map(String::as_str);
        assert_eq!(events::logged_with(Level::WARN, &words), 1);
        guard.release().await.unwrap();
        waiting::is_served(waiter).await;
    }
}

/// Goal: a release that may tell no waiter of its turn costs the first one its place.
#[tokio::test]
async fn without_the_right_to_publish_waiters_keep_their_places() {
    let server = server_without(&[]);
    let mut verbs = Verbs::open_impatient(&url(&server), LONG).unwrap();
    verbs.listen(channel().0);
    let [holder, first, second] = [(); 3].map(|()| verbs.attempt(KEY, LONG, None).unwrap());
    verbs.acquire(&holder).await.unwrap().expect("no one has the lock");
    for waiter in [&first, &second] {
        drop(verbs.enqueue(waiter).await.unwrap());
    }
    set_rights(&server, &["-publish"]);
    verbs.release(&holder, None, Duration::ZERO).await.unwrap();
    let admin = server.admin();
    assert_eq!(admin.get(KEY), None);
    let places: Vec<String> = admin.command(&["LRANGE", QUEUE, "0", "-1"]);
    let owners = places.iter().filter_map(|place| place.split_once(' ')).map(|place| place.1);
    assert_eq!(owners.collect::<Vec<_>>(), [first.owner(), second.owner()]);
}

/// Goal: permits that no one may have, because no one knows who of the waiters is alive.
#[tokio::test]
async fn without_the_right_to_count_listeners_a_free_permit_goes_to_a_try() {
    let server = server_without(&["+pubsub|numsub"]);
    let locker = connect_ample(&url(&server)).await;
    let entry = "300000 0123456789abcdef.1";
    server.admin().command::<()>(&["RPUSH", "lockable:queue:#:disLock:{k}", entry]);
    let permit = locker.lock("k").permits(2).try_acquire().await;
    permit.expect("it is free").release().await.unwrap();
}

#[tokio::test]
async fn a_missing_right_to_select_is_named() {
    let server = server_without(&["+select"]);
    let error = ample(&server.url_with("app", PASSWORD, 3)).connect().await.unwrap_err();
    assert_refused(&error, "select");
}

#[tokio::test]
async fn a_withdrawn_right_to_acquire_is_named() {
    let changes: [(&[&str], &str); 4] = [
        (&["-set"], "set"),
        (&["-incr"], "incr"),
        (&["resetkeys"], "~disLock:*"),
        (&["resetkeys", "~disLock:*"], "lockable:"),
    ];
    for (change, name) in changes {
        let (server, locker) = prepared().await;
        // The first grant on a connection needs a script, and each one after it these rights. It is
        // dropped, so that the background has its connection: no new one is opened without them.
        drop(locker.lock("k").acquire().await.unwrap());
        freed(&server).await;
        set_rights(&server, change);
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert_refused(&error, name);
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0), "{change:?}");
        set_rights(&server, &acl_rights());
        freed(&server).await;
    }
}

/// The releaser continues, so the lock is freed once the right is back.
#[tokio::test]
async fn a_withdrawn_right_to_release_is_named() {
    for (change, name) in [("-evalsha", "eval"), ("-get", "get"), ("-del", "del")] {
        let (server, locker) = prepared().await;
        let guard = locker.lock("k").acquire().await.unwrap();
        set_rights(&server, &[change]);
        let error = guard.release().await.unwrap_err();
        assert_refused(&error, name);
        assert_eq!(error.key(), Some(KEY));
        set_rights(&server, &acl_rights());
        freed(&server).await;
    }
}

/// Goal: a call that was refused for certain is over; nothing is sent again and again for it.
/// Method: the repeated releases of an unknown outcome would come 10, 30 and 70 ms later.
#[tokio::test]
async fn a_refused_call_is_not_followed_by_releases() {
    let (server, locker) = prepared().await;
    let admin = server.admin();
    set_rights(&server, &["-set"]);
    admin.reset_statistics();
    assert!(locker.lock("k").acquire().await.unwrap_err().kind() == LockErrorKind::Refused);
    let start = now();
    // Time itself is the subject: nothing happens for a while.
    wait::until_async(LIMIT, async || start.elapsed().as_millis() > 200).await;
    let releases = admin.command_calls("evalsha") + admin.command_calls("eval");
    assert!(releases <= 1, "{releases} releases");
}

/// A server, and a locker with exactly the rights that it needs.
async fn prepared() -> (Server, Locker) {
    let server = server_without(&[]);
    let locker = connect_ample(&url(&server)).await;
    (server, locker)
}

fn server_without(missing: &[&str]) -> Server {
    let mut rules = acl_rights();
    rules.retain(|right| !missing.contains(right));
    Server::builder().user("app", &format!("on >{PASSWORD} {}", rules.join(" "))).start()
}

fn set_rights(server: &Server, rules: &[&str]) {
    server.admin().command::<()>(&[&["ACL", "SETUSER", "app"], rules].concat());
}

fn url(server: &Server) -> String {
    server.url_with("app", PASSWORD, 0)
}

fn assert_refused(error: &LockError, what: &str) {
    assert!(error.kind() == LockErrorKind::Refused && error.is_unavailable(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(what), "`{what}` is not in: {text}");
    assert!(text.contains("redis://127.0.0.1:"), "{text}");
    assert!(!everything(error).contains(PASSWORD), "{}", everything(error));
}
