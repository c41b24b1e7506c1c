//! The least rights of a user of a cluster, and how a report names each that is missing.

use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_tests::cluster::Cluster;
use lockable_tests::wait;

use super::{check, codes, refused, shown};
use crate::support::{LIMIT, LONG, acl_line_of_nodes, connect, patient, rights};

/// Two masters with the user of the documented line.
fn documented() -> Cluster {
    let rules = format!("on >secret {}", rights(acl_line_of_nodes()).join(" "));
    Cluster::builder().shards(2).replicas(0).user("app", &rules).start()
}

fn url(cluster: &Cluster, user: &str) -> String {
    cluster.url_with(user, "secret")
}

/// Goal: the documented line suffices, also while a slot moves.
/// Method: locks are held, waited for and handed off, and then the slot goes key by key; no node refuses anything.
#[tokio::test]
async fn the_documented_line_of_a_cluster_allows_everything() {
    let cluster = documented();
    // What is asked for key by key takes longer, on a busy machine much longer.
    let connect = async || patient(&url(&cluster, "app")).command_deadline(LIMIT).connect().await;
    let (locker, other) = (connect().await.unwrap(), connect().await.unwrap());
    let key = "disLock:k";
    let guard = locker.lock("k").expire(LONG).renew().acquire().await.unwrap();
    guard.extend(2 * LONG).await.unwrap();
    assert!(other.inspect("k").await.unwrap().is_some());
    let waiting = tokio::spawn(async move { other.lock("k").run(async {}).await });
    let (master, slot) = (cluster.master_of(key), lockable_tests::cluster::slot(key));
    let queued = || master.admin().command::<u64>(&["LLEN", "lockable:queue:{disLock:k}"]) == 1;
    wait::until_async(LIMIT, async || queued()).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap();
    let guard = locker.lock("k").expire(LONG).acquire().await.unwrap();
    let target = cluster.first_masters().find(|server| server.addr() != master.addr()).unwrap();
    cluster.begin_move(slot, target);
    cluster.move_key(key).unwrap();
    guard.extend(2 * LONG).await.unwrap();
    guard.release().await.unwrap();
    locker.lock("k").run(async {}).await.unwrap();
    cluster.end_move(slot).unwrap();
    for server in cluster.servers() {
        assert_eq!(refused(server, "app"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_check_of_a_cluster_needs_no_more_than_the_line() {
    let cluster = documented();
    let report = check(&url(&cluster, "app")).await;
    let notes: Vec<_> = report.findings().map(|note| (note.code(), note.subject())).collect();
    let [config, info] = ["+config|get", "+info"].map(|right| (Code::CheckIncomplete, Some(right)));
    let replica = (Code::NoReplica, None);
    assert_eq!(notes, [replica, replica, config, info, config, info], "{report}");
}

/// Goal: each word of the line is needed, and its lack is named, at each node.
/// Method: each is left out once.
#[tokio::test]
async fn each_missing_right_is_named_at_each_node() {
    let cluster = documented();
    let needed = rights(acl_line_of_nodes());
    assert!(needed.len() > 20);
    for (number, right) in needed.into_iter().enumerate() {
        let user = format!("app{number}");
        set_user(&cluster, &user, &[right]);
        let report = check(&url(&cluster, &user)).await;
        assert_eq!(missing(&report), expected(&cluster, right), "{report}");
        let severity = match right {
            _ if WARNINGS.contains(&right) => Severity::Warning,
            _ if OPTIONAL.contains(&right) => Severity::Info,
            _ => Severity::Error,
        };
        for finding in report.findings().filter(|finding| finding.subject() == Some(right)) {
            assert_eq!(finding.severity(), severity, "{report}");
            assert!(finding.advice().contains(&format!("ACL SETUSER {user} {right}")), "{report}");
        }
        let others = [Code::MissingRight, Code::ScriptsNotCached, Code::CheckIncomplete];
        let mut others = report.findings().filter(|finding| !others.contains(&finding.code()));
        assert!(others.all(|other| other.code() == Code::NoReplica), "{report}");
        assert_eq!(report.is_ok(), severity < Severity::Error, "{report}");
    }
}

/// Without these locks work, but slowly or not all the time.
const WARNINGS: [&str; 10] = [
    "&lockable:*",
    "+lpush",
    "+eval",
    "+script|load",
    "+spublish",
    "+ssubscribe",
    "+sunsubscribe",
    "+pubsub|shardnumsub",
    "+ping",
    "+asking",
];

/// Without these operators see less, and stop holders later.
const OPTIONAL: [&str; 6] =
    ["+client|setname", "+client|tracking", "+client|caching", "+exists", "+publish", "+subscribe"];

fn set_user(cluster: &Cluster, user: &str, lacking: &[&str]) {
    let mut line = acl_line_of_nodes();
    line.retain(|word| !lacking.contains(word));
    line[2] = user;
    for server in cluster.servers() {
        server.admin().command::<()>(&line);
    }
}

/// Each rule that the user misses, and where.
fn missing(report: &Report) -> Vec<(String, String)> {
    let is_right = |code| matches!(code, Code::MissingRight | Code::ScriptsNotCached);
    let of_right = report.findings().filter(|finding| is_right(finding.code()));
    let named = |finding: &Finding| Some((finding.subject()?.into(), finding.address()?.into()));
    of_right.map(|finding| named(finding).expect("a rule and an address")).collect()
}

fn expected(cluster: &Cluster, right: &str) -> Vec<(String, String)> {
    cluster.servers().map(|node| (right.to_owned(), node.addr().to_string())).collect()
}

/// A user without rights learns all that it needs from the error.
#[tokio::test]
async fn a_user_who_may_not_ask_for_slots_learns_the_line() {
    let cluster = documented();
    set_user(&cluster, "nobody", &rights(acl_line_of_nodes()));
    let url = url(&cluster, "nobody");
    let error = lockable_runtime::Locker::connect(&url).await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_refused() && text.contains(&rights(acl_line_of_nodes()).join(" ")), "{text}");
    let report = check(&url).await;
    assert_eq!(codes(&report), [Code::MissingRight; 2], "{report}");
    assert!(!shown(&report).contains("secret") && !text.contains("secret"), "{report}");
}

/// Goal: what waits for grants that it may not hear of asks for the lock.
#[tokio::test]
async fn calls_wait_without_the_rights_to_channels() {
    let cluster = documented();
    for right in ["+ssubscribe", "+spublish", "+pubsub|shardnumsub", "&lockable:*"] {
        set_user(&cluster, "poor", &[right]);
        let url = url(&cluster, "poor");
        let (locker, other) = (connect(&url).await, connect(&url).await);
        let guard = locker.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(async move { other.lock("k").run(async {}).await });
        let queue = ["EXISTS", "lockable:queue:{disLock:k}"];
        let master = cluster.master_of("disLock:k").admin();
        let is_queued = || master.command::<u64>(&queue) == 1;
        wait::until_async(LIMIT, async || is_queued()).await;
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap();
        let report = check(&url).await;
        assert!(report.is_ok(), "{right}: {report}");
    }
}
