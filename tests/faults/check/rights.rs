//! The least rights, and how a report names each that is missing.

use std::time::Duration;

use lockable_runtime::check::{Code, Report, Role, Severity};
use lockable_runtime::{LockError, Locker};
use lockable_tests::{Admin, Server, wait};

use super::{check, codes, missing, only, refused, sound};
use crate::support::{KEY, LIMIT, LONG, acl_line, acl_rights, ample, connect_ample, set_user};

/// A server with the user of the documented line, and the URL of that user.
fn documented() -> (Server, String) {
    let server = sound().start();
    server.admin().command::<()>(&acl_line());
    let url = server.url_with(acl_line()[2], "secret", 1);
    (server, url)
}

#[tokio::test]
async fn the_documented_line_allows_everything() {
    let (server, url) = documented();
    let (locker, other) = (connect_ample(&url).await, connect_ample(&url).await);
    let admin = server.admin();
    admin.command::<()>(&["SELECT", "1"]);
    everything(&locker, &other, &admin, "lockable:queue:{disLock:k}").await.unwrap();
    assert_eq!(admin.get(KEY), None);
    lacks_nothing(&locker.check().await);
}

/// Goal: all names in the server begin with the namespace, or with the prefix, so that a user can lock who may
/// use nothing else.
#[tokio::test]
async fn a_user_of_one_namespace_can_do_everything() {
    let server = sound().start();
    let admin = server.admin();
    let mut line = acl_line();
    line.retain(|word| !word.starts_with(['~', '&']));
    line.extend(["~shop:*", "&shop:*"]);
    admin.command::<()>(&line);
    let url = server.url_with(line[2], "secret", 0) + "?prefix=shop:&namespace=shop:lockable";
    let (locker, other) = (connect_ample(&url).await, connect_ample(&url).await);
    everything(&locker, &other, &admin, "shop:lockable:queue:{shop:k}").await.unwrap();
    lacks_nothing(&locker.check().await);
    assert_eq!(admin.keys("*"), admin.keys("shop:lockable:fence:{???}"));
    assert_eq!(admin.keys("*").len(), 1);
}

/// Nothing but the right to look at settings, which locks do not need.
fn lacks_nothing(report: &Report) {
    let notes: Vec<_> = report.findings().map(|note| (note.code(), note.subject())).collect();
    let unseen = ["+config|get", "+info"].map(|right| (Code::CheckIncomplete, Some(right)));
    assert_eq!(notes, unseen, "{report}");
    assert_eq!(report.worst(), Some(Severity::Info));
}

/// Everything that is done with a lock, as a user of the crate does it.
pub(super) async fn everything(
    locker: &Locker,
    other: &Locker,
    admin: &Admin,
    queue: &str,
) -> Result<(), LockError> {
    let guard = locker.lock("k").renew().acquire().await?;
    guard.lease().extend(2 * LONG).await?;
    assert!(other.inspect("k").await?.is_some());
    assert!(other.lock("k").try_acquire().await.is_err_and(|error| error.is_busy()));
    let release = async {
        let queued = || admin.command::<u64>(&["LLEN", queue]);
        wait::until_async(LIMIT, async || queued() == 2).await;
        guard.release().await
    };
    let given_up = other.lock("k").wait(Duration::from_millis(1)).acquire().await;
    assert!(given_up.unwrap_err().is_wait_limit_reached());
    let (waits, fair) = (locker.lock("k"), other.lock("k").wait(LONG).fair());
    let (released, one, two) = tokio::join!(release, waits.run(async {}), fair.run(async {}));
    released.and(one).and(two)
}

#[tokio::test]
async fn each_missing_right_is_named() {
    let server = sound().start();
    let admin = server.admin();
    assert!(acl_rights().len() > 20);
    for (number, right) in acl_rights().into_iter().enumerate() {
        let user = format!("app{number}");
        set_user([&server], acl_line(), &user, &[right]);
        let report = check(&server.url_with(&user, "secret", 1)).await;
        assert_eq!(missing(&report), [right], "{report}");
        let finding = report.findings().next().unwrap();
        let is_optional =
            right.starts_with("+client|") || ["+copy", "+script|exists"].contains(&right);
        assert_eq!(finding.severity() == Severity::Info, is_optional, "{report}");
        let line = format!("ACL SETUSER {user} {right}");
        assert!(finding.advice().contains(&line), "{report}");
        let others = codes(&report).into_iter().filter(|code| *code != Code::CheckIncomplete);
        assert_eq!(others.count(), 1, "{report}");
    }
    // Where nothing may be deleted, what is left ends by itself.
    admin.command::<()>(&["SELECT", "1"]);
    wait::until_async(LIMIT, async || admin.keys("*").is_empty()).await;
}

#[tokio::test]
async fn all_missing_rights_are_named_at_once() {
    let server = sound().user("limited", "on >secret").start();
    let report = check(&server.url_with("limited", "secret", 0)).await;
    let mut named = missing(&report);
    named.sort_unstable();
    // Without a command
    // allowed, nothing is known of keys and channels; and database 0 needs no choice.
    let mut lacking = acl_rights();
    lacking.retain(|right| right.starts_with('+') && *right != "+select");
    lacking.sort_unstable();
    assert_eq!(named, lacking, "{report}");
}

/// The whole report of a user who may look alone, as that user.
#[tokio::test]
async fn each_right_that_a_reader_lacks_is_named() {
    let server = sound().start();
    let line = line_of_operators(0);
    let rights: Vec<_> = line.iter().copied().filter(|word| word.starts_with(['+', '%'])).collect();
    assert!(rights.len() > 9);
    set_user([&server], line.clone(), "whole", &[]);
    assert_eq!(codes(&check_as(&server, "whole", Role::Reader).await), []);
    assert_eq!(refused(&server, "whole"), [""; 0], "nothing else is tried");
    for (number, right) in rights.into_iter().enumerate() {
        let user = format!("reader{number}");
        set_user([&server], line.clone(), &user, &[right]);
        let report = check_as(&server, &user, Role::Reader).await;
        assert_eq!(missing(&report), [right], "{report}");
        assert_eq!(report.findings().count(), 1, "{report}");
        let is_of_a_column =
            ["+dbsize", "+time", "+client|list", "+pubsub|numsub"].contains(&right);
        let severity = if is_of_a_column { Severity::Info } else { Severity::Error };
        assert_eq!(report.worst(), Some(severity), "{report}");
    }
}

#[tokio::test]
async fn a_missing_right_hides_no_other_failure() {
    let server = sound().config("maxmemory", "1").start();
    set_user([&server], acl_line(), "app", &["+evalsha"]);
    let report = check(&server.url_with("app", "secret", 0)).await;
    assert_eq!(missing(&report), ["+evalsha"], "{report}");
    let failed = only(&report, Code::OperationFailed);
    assert_eq!(failed.subject(), Some("acquiring a lock"), "{report}");
}

#[tokio::test]
async fn all_that_is_missing_is_granted_by_one_line() {
    let server = sound().start();
    let lacking = ["%R~lockable:*", "+getrange", "+lrange"];
    set_user([&server], line_of_operators(0), "reader", &lacking);
    let report = check_as(&server, "reader", Role::Reader).await;
    let text = report.to_string();
    let line = "do this: `ACL SETUSER reader %R~lockable:* +getrange +lrange`";
    assert!(text.ends_with(line) && text.matches("ACL SETUSER").count() == 1, "{text}");
    let together = "lacks the rights `%R~lockable:* +getrange`: no lock can be read";
    assert!(text.contains(together), "{text}");
    // Each is a finding of its own for programs.
    assert!(report.findings().all(|one| one.advice().contains(one.subject().unwrap())), "{text}");
    // Without a command that is allowed nothing is known of names, and all the same the line is enough.
    let words: Vec<_> = ["ACL", "SETUSER", "nobody", "on", ">secret", "+select"].into();
    server.admin().command::<()>(&words);
    let text = check_as(&server, "nobody", Role::Reader).await.to_string();
    let (_, line) = text.rsplit_once("do this: `").unwrap();
    let line: Vec<_> = line.trim_end_matches('`').split(' ').collect();
    server.admin().command::<()>(&line);
    assert_eq!(codes(&check_as(&server, "nobody", Role::Reader).await), []);
}

/// A reader who checks as an app sees what is missing for that, and a program as an operator what that needs more.
#[tokio::test]
async fn another_role_needs_other_rights() {
    let server = sound().start();
    set_user([&server], line_of_operators(0), "reader", &[]);
    let report = check_as(&server, "reader", Role::App).await;
    assert!(missing(&report).contains(&"+set") && !missing(&report).contains(&"+pttl"), "{report}");
    assert_eq!(report.to_string().matches("ACL SETUSER").count(), 1, "{report}");
    set_user([&server], acl_line(), "app", &[]);
    let report = check_as(&server, "app", Role::Operator).await;
    let mut lacking = missing(&report);
    lacking.sort_unstable();
    let more = ["+client|list", "+dbsize", "+getrange", "+llen", "+lrange", "+scan"];
    assert_eq!(lacking, more, "{report}");
    set_user([&server], line_of_operators(2), "operator", &[]);
    lacks_nothing(&check_as(&server, "operator", Role::Operator).await);
}

async fn check_as(server: &Server, user: &str, role: Role) -> Report {
    let url = server.url_with(user, "secret", 1);
    ample(&url).connect_lazy().unwrap().check_as(role).await
}

/// The documented line of that number.
pub(super) fn line_of_operators(number: usize) -> Vec<&'static str> {
    let text = include_str!("../../../lockable-runtime/acl_operators.md");
    let line = text.lines().filter(|line| line.starts_with("ACL SETUSER ")).nth(number).unwrap();
    line.split_whitespace().collect()
}

#[tokio::test]
async fn a_missing_right_to_names_says_how_they_begin() {
    let (_server, url) = documented();
    let companions = ample(&url).namespace("shop:lockable");
    let cases = [
        (ample(&url).prefix("shop:"), &["~shop:*"][..]),
        (companions, &["~shop:lockable:*", "&shop:lockable:*"]),
    ];
    for (builder, rights) in cases {
        let report = builder.connect_lazy().unwrap().check().await;
        assert_eq!(missing(&report), rights, "{report}");
    }
}

#[tokio::test]
async fn missing_rights_to_look_are_only_info() {
    let (server, url) = documented();
    let admin = server.admin();
    for (right, other) in [("+config|get", "+info"), ("+info", "+config|get")] {
        admin.command::<()>(&acl_line());
        admin.command::<()>(&["ACL", "SETUSER", "app", right]);
        let report = check(&url).await;
        let note = only(&report, Code::CheckIncomplete);
        assert_eq!((note.subject(), note.severity()), (Some(other), Severity::Info), "{report}");
    }
    admin.command::<()>(&["ACL", "SETUSER", "app", "+config|get"]);
    assert_eq!(codes(&check(&url).await), []);
}
