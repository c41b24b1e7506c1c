//! Passwords and rights: what is missing is named, and nothing secret is shown.

use lockable_runtime::{LockError, Locker};
use lockable_tests::{Server, wait};

use crate::support::{
    FENCE, KEY, LIMIT, Runs, acl_rights, connect, decorated, everything, freed, now, patient,
};

const PASSWORD: &str = "s3cr3t-w0rd";

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let server = Server::builder().password("right").start();
    let url = server.url_with("", PASSWORD, 0);
    let error = Locker::connect(&url).await.unwrap_err();
    assert_refused(&error, "password");
    let locker = patient(&url).connect_lazy().unwrap();
    let runs = Runs::default();
    let error = decorated(&locker, &runs).await.unwrap_err();
    assert_refused(&error, "password");
    assert_eq!((error.key(), runs.count()), (Some(KEY), 0));
    let shown = format!("{locker:?} {:?}", Locker::builder().url(&url));
    assert!(!shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_wrong_user_is_refused_and_not_shown() {
    let server =
        Server::builder().user("app", &format!("on >right {}", acl_rights().join(" "))).start();
    for user in ["app", "absent"] {
        let error = Locker::connect(&server.url_with(user, PASSWORD, 0)).await.unwrap_err();
        assert_refused(&error, "user and password");
    }
}

#[tokio::test]
async fn a_missing_password_is_refused() {
    let server = Server::builder().password(PASSWORD).start();
    let error = Locker::connect(&server.url()).await.unwrap_err();
    assert_refused(&error, "password");
}

#[tokio::test]
async fn an_unneeded_password_is_not_shown() {
    let server = Server::start();
    match Locker::connect(&server.url_with("", PASSWORD, 0)).await {
        // The default user of a server without passwords takes any.
        Ok(locker) => locker.lock("k").try_run(async {}).await.unwrap().unwrap(),
        Err(error) => assert_refused(&error, "password"),
    }
}

#[tokio::test]
async fn a_changed_password_is_refused_at_the_next_connection() {
    let server = Server::builder().password(PASSWORD).start();
    let locker = connect(&server.url_with("", PASSWORD, 0)).await;
    let admin = server.admin();
    admin.command::<()>(&["CONFIG", "SET", "requirepass", "changed"]);
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    assert_refused(&locker.lock("k").acquire().await.unwrap_err(), "password");
}

#[tokio::test]
async fn a_user_with_exactly_the_rights_can_lock() {
    let (server, locker) = server_for(&acl_rights().join(" ")).await;
    locker.lock("k").try_acquire().await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_user_who_may_not_load_scripts_can_lock() {
    let (server, locker) = server_for(&without(&["+script|load", "+evalsha"])).await;
    locker.lock("k").try_acquire().await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_missing_right_is_named_before_a_body_runs() {
    let rights: [(&[&str], &str); 14] = [
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
    ];
    for (missing, name) in rights {
        let server = server_of(&without(missing));
        let locker = patient(&server.url_with("app", PASSWORD, 0)).connect_lazy().unwrap();
        let runs = Runs::default();
        let outcome = decorated(&locker, &runs).await;
        let error = outcome.expect_err(name);
        assert_refused(&error, name);
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0), "{missing:?}");
        freed(&server).await;
        // Where nothing may be deleted, what the connection was tried with ends by itself.
        let admin = server.admin();
        wait::until_async(LIMIT, async || admin.keys("*probe*").is_empty()).await;
    }
}

#[tokio::test]
async fn a_missing_right_to_select_is_named() {
    let server = server_of(&without(&["+select"]));
    let error = patient(&server.url_with("app", PASSWORD, 3)).connect().await.unwrap_err();
    assert_refused(&error, "select");
}

#[tokio::test]
async fn a_withdrawn_right_to_acquire_is_named() {
    let rights = [("-set", "set"), ("-incr", "incr"), ("resetkeys", "~disLock:*")];
    for (change, name) in rights {
        let (server, locker) = server_for(&acl_rights().join(" ")).await;
        // The first grant on a connection needs a script, and each one after it these rights. It is
        // dropped, so that the background has its connection: no new one is opened without them.
        drop(locker.lock("k").acquire().await.unwrap());
        freed(&server).await;
        server.admin().command::<()>(&["ACL", "SETUSER", "app", change]);
        let runs = Runs::default();
        let error = decorated(&locker, &runs).await.unwrap_err();
        assert_refused(&error, name);
        assert_eq!((error.key(), runs.count()), (Some(KEY), 0), "{change}");
        freed(&server).await;
    }
}

#[tokio::test]
async fn a_withdrawn_right_to_companion_keys_is_named() {
    let (server, locker) = server_for(&acl_rights().join(" ")).await;
    let admin = server.admin();
    admin.command::<()>(&["ACL", "SETUSER", "app", "resetkeys", "~disLock:*"]);
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert_refused(&error, "lockable:");
    admin.command::<()>(&["ACL", "SETUSER", "app", "~lockable:*"]);
    freed(&server).await;
}

/// The releaser continues, so the lock is freed once the right is back.
#[tokio::test]
async fn a_withdrawn_right_to_release_is_named() {
    for (change, name) in [("-evalsha", "eval"), ("-get", "get"), ("-del", "del")] {
        let (server, locker) = server_for(&acl_rights().join(" ")).await;
        let guard = locker.lock("k").acquire().await.unwrap();
        let admin = server.admin();
        admin.command::<()>(&["ACL", "SETUSER", "app", change]);
        let error = guard.release().await.unwrap_err();
        assert_refused(&error, name);
        assert_eq!(error.key(), Some(KEY));
        admin.command::<()>(&["ACL", "SETUSER", "app", &change.replace('-', "+")]);
        freed(&server).await;
    }
}

/// Goal: a call that was refused for certain is over; nothing is sent again and again for it.
/// Method: the repeated releases of an unknown outcome would come 10, 30 and 70 ms later.
#[tokio::test]
async fn a_refused_call_is_not_followed_by_releases() {
    let (server, locker) = server_for(&acl_rights().join(" ")).await;
    let admin = server.admin();
    admin.command::<()>(&["ACL", "SETUSER", "app", "-set"]);
    admin.reset_statistics();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_refused());
    let start = now();
    // Time itself is the subject: nothing happens for a while.
    wait::until_async(LIMIT, async || start.elapsed().as_millis() > 200).await;
    let releases = admin.command_calls("evalsha") + admin.command_calls("eval");
    assert!(releases <= 1, "{releases} releases");
}

#[tokio::test]
async fn a_new_right_counts_at_the_next_call() {
    let server = server_of(&without(&["+set"]));
    let locker = patient(&server.url_with("app", PASSWORD, 0)).connect_lazy().unwrap();
    assert!(locker.lock("k").acquire().await.unwrap_err().is_refused());
    server.admin().command::<()>(&["ACL", "SETUSER", "app", "+set"]);
    locker.lock("k").try_acquire().await.unwrap().unwrap().release().await.unwrap();
    assert!(server.admin().pttl(FENCE) > 0);
}

async fn server_for(rules: &str) -> (Server, Locker) {
    let server = server_of(rules);
    let locker = connect(&server.url_with("app", PASSWORD, 0)).await;
    (server, locker)
}

fn server_of(rules: &str) -> Server {
    Server::builder().user("app", &format!("on >{PASSWORD} {rules}")).start()
}

fn without(missing: &[&str]) -> String {
    acl_rights().into_iter().filter(|right| !missing.contains(right)).collect::<Vec<_>>().join(" ")
}

fn assert_refused(error: &LockError, what: &str) {
    assert!(error.is_refused() && error.is_unavailable(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(what), "`{what}` is not in: {text}");
    assert!(text.contains("redis://127.0.0.1:"), "{text}");
    assert!(!everything(error).contains(PASSWORD), "{}", everything(error));
}

/// Goal: a user that is refused leaves nothing behind, however often it tries, and whatever it may not do.
#[tokio::test]
async fn a_refused_user_leaves_no_keys() {
    for missing in [
        &["+pexpire", "+del"][..],
        &["+pexpire", "+del", "+time"],
        &["+pexpire", "+del", "+evalsha", "+eval"],
    ] {
        let rules: Vec<_> =
            acl_rights().into_iter().filter(|rule| !missing.contains(rule)).collect();
        let rules = format!("on >secret {}", rules.join(" "));
        let server = Server::builder().user("app", &rules).start();
        for _ in 0..3 {
            let error = Locker::connect(&server.url_with("app", "secret", 0)).await.unwrap_err();
            assert!(error.is_refused(), "{error}");
        }
        let admin = server.admin();
        wait::until_async(LIMIT, async || admin.keys("*").is_empty()).await;
    }
}
