//! The least rights of a user of Sentinels, and how a report names each that is missing.

use lockable_runtime::LockErrorKind;
use std::sync::Arc;

use lockable_runtime::LockError;
use lockable_runtime::check::Code;
use lockable_tests::{Sentinels, Server, Shared, wait};

use super::{check, each_misses, missing_at, only, refused, refused_to_locks};
use crate::support::{
    LIMIT, LONG, acl_line, acl_line_of_sentinels, ample, connect_ample, rights, set_user,
};
use crate::waiting::support::queued;

/// A group with the users of the documented lines.
fn documented() -> Sentinels {
    let rules = |line: Vec<&'static str>| format!("on >secret {}", rights(line).join(" "));
    let group = Sentinels::builder().down_after(LONG).user("app", &rules(acl_line()));
    group.sentinel_user("app", &rules(acl_line_of_sentinels())).start()
}

/// One that several tests use, each with a user of its own.
fn shared() -> Arc<Sentinels> {
    static SHARED: Shared<Sentinels> = Shared::unstarted();
    SHARED.get(documented)
}

/// With the users of both kinds of servers.
fn url(group: &Sentinels, user: &str) -> String {
    let of_servers = group.url_with("app", "secret");
    format!("{of_servers}?sentinel_user={user}&sentinel_password=secret")
}

/// Goal: the documented lines suffice, also for a failover.
/// Method: a lock is held over one while another call waits for it; then no server has refused anything.
#[tokio::test]
async fn the_documented_lines_allow_a_failover() {
    let group = documented();
    let url = url(&group, "app");
    let (locker, other) = (connect_ample(&url).await, connect_ample(&url).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("k").run(async {}).await });
    for server in group.servers() {
        queued(server, 1).await;
    }
    subscribed(&group).await;
    let left = group.primary();
    group.fail_over();
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
    for server in group.sentinels().iter().chain(group.servers()) {
        assert_eq!(refused_to_locks(server, "app"), Vec::<String>::new());
    }
    let report = check(&url).await;
    assert_ne!(report.address(), Some(left.addr().to_string().as_str()), "{report}");
}

/// Waits until a locker hears of failovers from each Sentinel.
async fn subscribed(group: &Sentinels) {
    let admins: Vec<_> = group.sentinels().iter().map(Server::admin).collect();
    let is_subscribed = |list: &str| list.lines().any(|client| client.contains(" user=app "));
    let list = ["CLIENT", "LIST", "TYPE", "pubsub"];
    let all = || admins.iter().all(|admin| is_subscribed(&admin.command::<String>(&list)));
    wait::until_async(LIMIT, async || all()).await;
}

#[tokio::test]
async fn a_check_needs_no_more_than_the_lines() {
    let group = shared();
    let report = check(&url(&group, "app")).await;
    let notes: Vec<_> = report.findings().map(|note| (note.code(), note.subject())).collect();
    let unseen = ["+config|get", "+info"];
    assert_eq!(notes, unseen.map(|right| (Code::CheckIncomplete, Some(right))), "{report}");
}

/// Goal: each word of the line is needed, and its lack is named, at each Sentinel.
/// Method: each is left out once.
#[tokio::test]
async fn each_missing_right_is_named_at_each_sentinel() {
    let group = shared();
    let needed = rights(acl_line_of_sentinels());
    assert_eq!(needed.len(), 4);
    for (number, right) in needed.into_iter().enumerate() {
        let user = format!("app{number}");
        set_user(group.sentinels(), acl_line_of_sentinels(), &user, &[right]);
        stops(&group, &user, right).await;
        let report = check(&url(&group, &user)).await;
        assert_eq!(missing_at(&report), each_misses(group.sentinels(), right), "{report}");
        let line = format!("`ACL SETUSER {user} {right}`");
        let mut findings = report.findings().filter(|found| found.code() == Code::MissingRight);
        assert!(findings.all(|found| found.advice() == line), "{report}");
        let is_needed_to_connect = right == "+sentinel|get-master-addr-by-name";
        assert_eq!(report.is_ok(), !is_needed_to_connect, "{report}");
    }
}

/// Without that right a locker is not made, or hears of no failover.
async fn stops(group: &Sentinels, user: &str, right: &str) {
    let connecting = ample(&url(group, user)).connect().await;
    let refusal = match right {
        "+sentinel|get-master-addr-by-name" => return assert_refused(&connecting.unwrap_err()),
        "+subscribe" => "subscribe",
        "&+switch-master" => "+switch-master",
        // A subscription that may not ask whether it lives fills the server's log, and does no less.
        _ => "",
    };
    let locker = connecting.unwrap();
    locker.lock("k").run(async {}).await.unwrap();
    for sentinel in group.sentinels().iter().filter(|_| !refusal.is_empty()) {
        let is_refused = || refused(sentinel, user).iter().any(|object| object == refusal);
        wait::until_async(LIMIT, async || is_refused()).await;
    }
}

/// A user without rights learns all that it needs from the error.
fn assert_refused(error: &LockError) {
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    let text = error.to_string();
    let words = rights(acl_line_of_sentinels()).join(" ");
    assert!(text.contains(&words) && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn all_missing_rights_of_sentinels_are_named_at_once() {
    let group = shared();
    let line = acl_line_of_sentinels();
    set_user(group.sentinels(), line.clone(), "nobody", &rights(line));
    let report = check(&url(&group, "nobody")).await;
    // Without the command nothing is known of the channel, and without a subscription nothing of its `PING`.
    for right in ["+sentinel|get-master-addr-by-name", "+subscribe"] {
        let of_right = missing_at(&report).into_iter().filter(|(rule, _)| *rule == right);
        assert_eq!(of_right.collect::<Vec<_>>(), each_misses(group.sentinels(), right), "{report}");
    }
    only(&report, Code::Unreachable);
    assert_refused(&ample(&url(&group, "nobody")).connect().await.unwrap_err());
}

/// Users are not replicated: one that the new primary does not have is refused there.
#[tokio::test]
async fn a_user_that_a_replica_lacks_is_refused_after_a_failover() {
    let group = documented();
    let url = url(&group, "app");
    let locker = connect_ample(&url).await;
    for replica in group.replicas() {
        replica.admin().command::<()>(&["ACL", "DELUSER", "app"]);
    }
    group.fail_over();
    let report = check(&url).await;
    let refused = only(&report, Code::Refused);
    assert_eq!(refused.address(), report.address(), "{report}");
    let tried = async || locker.lock("k").try_acquire().await;
    wait::until_async(LIMIT, async || {
        tried().await.is_err_and(|error| error.kind() == LockErrorKind::Refused)
    })
    .await;
}
