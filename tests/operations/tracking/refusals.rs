//! Tracking is a hint: where a server, or a user's rights, refuse it, locks work as ever.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_runtime::check::{Code, Severity};
use lockable_tests::{Admin, Answer, Cue, Server, StubNodes};

use super::support::{end, hold, refused, stopped, tracked, warm_up};
use crate::support::{connect, statistic, until};

/// Goal: a user with the rights that locks needed before has all but this, and is not refused again and again.
#[tokio::test]
async fn a_user_without_the_rights_renews_all_the_same() {
    let all = "on >secret ~* &* +@all -client|tracking";
    tokio::join!(
        renews_without(all, "client|tracking"),
        renews_without(all.replace("tracking", "caching"), "client|caching"),
        renews_without(all.replace("client|tracking", "exists"), "exists"),
    );
}

async fn renews_without(rules: impl AsRef<str>, refusal: &str) {
    let server = Server::builder().user("app", rules.as_ref()).start();
    let (locker, admin) = (connect(&server.url_with("app", "secret", 0)).await, server.admin());
    renews(&locker, &admin).await;
    assert_eq!(refused(&admin), [refusal]);
}

/// Goal: a right that is taken away later is noticed, and costs one refusal.
#[tokio::test]
async fn rights_that_are_taken_away_cost_one_refusal() {
    let server = Server::builder().user("app", "on >secret ~* &* +@all").start();
    let (locker, admin) = (connect(&server.url_with("app", "secret", 0)).await, server.admin());
    warm_up(&locker, &admin).await;
    let guard = locker.lock("k").expire(SHORT).renew().acquire().await.unwrap();
    until(async || tracked(&admin) == 1).await;
    admin.command::<()>(&["ACL", "SETUSER", "app", "-exists"]);
    renewed(&admin, 2).await;
    guard.release().await.unwrap();
    assert_eq!(refused(&admin), ["exists"]);
}

/// Goal: servers, and proxies, that know no tracking, or not the version of the protocol that it needs.
#[tokio::test]
async fn a_server_that_offers_nothing_renews_as_ever() {
    let unknown = "ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.";
    let old = "NOPROTO unsupported protocol version";
    let hello = || Cue::of(["HELLO"]).about("3");
    tokio::join!(
        renews_behind(Cue::of(["CLIENT TRACKING"]), Answer::error(unknown)),
        renews_behind(
            Cue::of(["CLIENT CACHING"]),
            Answer::error("ERR unknown subcommand 'CACHING'")
        ),
        renews_behind(hello(), Answer::error(old)),
        renews_behind(hello(), Answer::BreakBefore),
    );
}

/// Behind a stub node that answers so, which is not asked again.
async fn renews_behind(cue: Cue, answer: Answer) {
    let (_server, stub_nodes, locker, admin) = behind_a_stub_node().await;
    stub_nodes.answer(0, cue.clone(), answer);
    let connections = || usize::try_from(statistic(&admin, "total_connections_received")).unwrap();
    warm_up(&locker, &admin).await;
    let guard = locker.lock("k").expire(SHORT).renew().acquire().await.unwrap();
    renewed(&admin, 1).await;
    let (asked, before) = (stub_nodes.count(0, &cue), connections());
    renewed(&admin, 2).await;
    // A renewal that a machine that stalls answers too late is repeated on another connection.
    let (again, later) = (stub_nodes.count(0, &cue) - asked, connections() - before);
    assert!(asked > 0 && again <= later, "{asked} and {again} times, on {later} later connections");
    guard.release().await.unwrap();
}

/// Goal: a lock that was deleted between its renewal and the read behind it is found, though no one says so.
/// Method: a stub node answers for the server that the script has found the lock.
#[tokio::test]
async fn a_lock_deleted_before_its_read_is_lost() {
    let (_server, stub_nodes, locker, admin) = behind_a_stub_node().await;
    warm_up(&locker, &admin).await;
    let body = hold(&locker, "k");
    until(async || admin.get("disLock:k").is_some()).await;
    let look = Cue::of(["EVALSHA"]).about("disLock:k");
    stub_nodes.answer(0, look.clone().times(1), Answer::Numbers(vec![1]));
    admin.del("disLock:k");
    assert!(stopped(body).await.contains("it has no holder"));
    assert_eq!(stub_nodes.count(0, &look), 2);
}

/// Goal: a read that finds nothing is no loss by itself.
#[tokio::test]
async fn a_lock_that_was_not_read_is_looked_at_again() {
    let (_server, stub_nodes, locker, admin) = behind_a_stub_node().await;
    warm_up(&locker, &admin).await;
    let read = Cue::of(["EXISTS"]);
    stub_nodes.answer(0, read.clone().times(1), Answer::Number(0));
    let body = hold(&locker, "k");
    until(async || stub_nodes.count(0, &read) >= 2).await;
    assert!(!body.is_finished());
    end(body).await;
}

async fn behind_a_stub_node() -> (Server, StubNodes, Locker, Admin) {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let (locker, admin) = (connect(&stub_nodes.url_of(0)).await, server.admin());
    (server, stub_nodes, locker, admin)
}

/// A short lease is renewed again and again.
async fn renews(locker: &Locker, admin: &Admin) {
    warm_up(locker, admin).await;
    let guard = locker.lock("k").expire(SHORT).renew().acquire().await.unwrap();
    renewed(admin, 2).await;
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
}

/// Renewed every two seconds, and kept where the machine stalls for four.
const SHORT: Duration = Duration::from_secs(6);

async fn renewed(admin: &Admin, count: u64) {
    let before = admin.command_calls("pexpire");
    until(async || admin.command_calls("pexpire") >= before + count).await;
}

#[tokio::test]
async fn a_check_says_that_deletions_are_noticed_late() {
    let (_server, stub_nodes, locker, _admin) = behind_a_stub_node().await;
    let unknown = Answer::error("ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.");
    stub_nodes.answer(0, Cue::of(["CLIENT TRACKING"]), unknown);
    let report = locker.check().await;
    let mut notes = report.findings().filter(|finding| finding.code() == Code::Untracked);
    let (Some(note), None) = (notes.next(), notes.next()) else { panic!("{report}") };
    assert_eq!(note.severity(), Severity::Info, "{report}");
    assert!(note.message().contains("four tenths of the lease"), "{report}");
    assert!(report.is_ok(), "{report}");
}
