//! The least rights of a user of a cluster, and how a report names each that is missing.

use lockable_runtime::LockErrorKind;
use std::sync::Arc;

use lockable_runtime::check::{Code, Role, Severity};
use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Shared};

use super::rights::{everything, line_of_operators};
use super::{check, codes, each_misses, hands_off, missing_at, refused_to_locks, shown};
use crate::support::{self, LONG, acl_line_of_nodes, ample, connect_ample, rights};

/// Two masters with the user of the documented line.
fn documented() -> Cluster {
    let rules = format!("on >secret {}", rights(acl_line_of_nodes()).join(" "));
    Cluster::builder().shards(2).replicas(0).steady().user("app", &rules).start()
}

/// One that several tests use, each with a user of its own.
fn shared() -> Arc<Cluster> {
    static SHARED: Shared<Cluster> = Shared::unstarted();
    SHARED.get(documented)
}

fn url(cluster: &Cluster, user: &str) -> String {
    cluster.url_with(user, "secret")
}

/// Goal: the documented line suffices, also while a slot moves.
/// Method: locks are held, waited for and handed off, and then the slot goes key by key; no node refuses anything.
#[tokio::test]
async fn the_documented_line_of_a_cluster_allows_everything() {
    let cluster = documented();
    let (url, key) = (url(&cluster, "app"), "disLock:k");
    let (locker, other) = (connect_ample(&url).await, connect_ample(&url).await);
    let master = cluster.master_of(key);
    everything(&locker, &other, &master.admin(), "lockable:queue:{disLock:k}").await.unwrap();
    let guard = locker.lock("k").acquire().await.unwrap();
    let target = cluster.first_masters().find(|server| server.addr() != master.addr()).unwrap();
    cluster.begin_move(slot(key), target);
    cluster.move_key(key).unwrap();
    guard.lease().extend(2 * LONG).await.unwrap();
    guard.release().await.unwrap();
    locker.lock("k").run(async {}).await.unwrap();
    cluster.end_move(slot(key)).unwrap();
    for server in cluster.servers() {
        assert_eq!(refused_to_locks(server, "app"), Vec::<String>::new());
    }
}

/// Each node has users of its own, so each needs the line.
#[tokio::test]
async fn what_a_reader_of_a_cluster_lacks_is_one_line() {
    let cluster = shared();
    let check = async |user: &'static str, lacking: &[&str]| {
        support::set_user(cluster.servers(), line_of_operators(1), user, lacking);
        let locker = ample(&url(&cluster, user)).connect_lazy().unwrap();
        locker.check_as(Role::Reader).await
    };
    let report = check("lookout", &[]).await;
    assert_eq!(codes(&report), [Code::NoReplica; 0], "{report}");
    let report = check("blinded", &["+lrange", "+getrange"]).await;
    let line = "do this, on each of these servers: `ACL SETUSER blinded +getrange +lrange`";
    assert!(report.to_string().ends_with(line), "{report}");
    assert_eq!(report.findings().count(), 4, "{report}");
    for server in cluster.servers() {
        let at = format!("at {}: the user `blinded` lacks the right", server.addr());
        assert_eq!(report.to_string().matches(&at).count(), 2, "{report}");
    }
}

#[tokio::test]
async fn a_check_of_a_cluster_needs_no_more_than_the_line() {
    let cluster = shared();
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
    let cluster = shared();
    let needed = rights(acl_line_of_nodes());
    assert!(needed.len() > 20);
    for (number, right) in needed.into_iter().enumerate() {
        let user = format!("app{number}");
        set_user(&cluster, &user, &[right]);
        let report = check(&url(&cluster, &user)).await;
        assert_eq!(missing_at(&report), each_misses(cluster.servers(), right), "{report}");
        let severity = match right {
            _ if WARNINGS.contains(&right) => Severity::Warning,
            _ if OPTIONAL.contains(&right) => Severity::Info,
            _ => Severity::Error,
        };
        for finding in report.findings().filter(|finding| finding.subject() == Some(right)) {
            assert_eq!(finding.severity(), severity, "{report}");
            assert!(finding.advice().contains(&format!("ACL SETUSER {user} {right}")), "{report}");
        }
        let others = [Code::MissingRight, Code::CheckIncomplete];
        let mut others = report.findings().filter(|finding| !others.contains(&finding.code()));
        assert!(others.all(|other| other.code() == Code::NoReplica), "{report}");
        assert_eq!(report.is_ok(), severity < Severity::Error, "{report}");
    }
}

/// Without these locks work, but slowly or not all the time.
const WARNINGS: [&str; 11] = [
    "+mget",
    "+exists",
    "&lockable:*",
    "+lpush",
    "+evalsha",
    "+spublish",
    "+ssubscribe",
    "+sunsubscribe",
    "+pubsub|shardnumsub",
    "+ping",
    "+asking",
];

/// Without these operators see less, and stop holders later.
const OPTIONAL: [&str; 6] = [
    "+script|exists",
    "+client|setname",
    "+client|tracking",
    "+client|caching",
    "+publish",
    "+subscribe",
];

fn set_user(cluster: &Cluster, user: &str, lacking: &[&str]) {
    support::set_user(cluster.servers(), acl_line_of_nodes(), user, lacking);
}

/// A user without rights learns all that it needs from the error.
#[tokio::test]
async fn a_user_who_may_not_ask_for_slots_learns_the_line() {
    let cluster = shared();
    set_user(&cluster, "nobody", &rights(acl_line_of_nodes()));
    let url = url(&cluster, "nobody");
    let error = ample(&url).connect().await.unwrap_err();
    let text = error.to_string();
    assert!(
        error.kind() == LockErrorKind::Refused
            && text.contains(&rights(acl_line_of_nodes()).join(" ")),
        "{text}"
    );
    let report = check(&url).await;
    assert_eq!(codes(&report), [Code::MissingRight; 2], "{report}");
    assert!(!shown(&report).contains("secret") && !text.contains("secret"), "{report}");
}

/// Goal: what waits for grants that it may not hear of asks for the lock.
#[tokio::test]
async fn calls_wait_without_the_rights_to_channels() {
    let cluster = shared();
    for right in ["+ssubscribe", "+spublish", "+pubsub|shardnumsub", "&lockable:*"] {
        set_user(&cluster, "poor", &[right]);
        let url = url(&cluster, "poor");
        hands_off(&url, cluster.master_of("disLock:k")).await;
        let report = check(&url).await;
        assert!(report.is_ok(), "{right}: {report}");
    }
}
