//! What a check says of the nodes of a cluster.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lockable_runtime::LockError;
use lockable_runtime::check::{Code, Finding, Report, Severity};
use lockable_tests::cluster::{Cluster, ClusterBuilder};
use lockable_tests::{Server, ServerBuilder, Tls, wait};

use super::{check, check_soon, codes, only, shown};
use crate::support::{LIMIT, acl_line_of_nodes, connect, patient, rights};

/// A cluster without a fault; the replicas let a failover leave no master without one.
fn sound_cluster() -> ClusterBuilder {
    let cluster = Cluster::builder().shards(2).replicas(4).node_timeout(LIMIT);
    let cluster = cluster.config("appendonly", "yes").config("appendfsync", "always");
    cluster.config("min-replicas-to-write", "1")
}

/// One that several tests use, and none harms.
fn sound() -> Arc<Cluster> {
    static SOUND: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
    let mut sound = SOUND.lock().unwrap_or_else(PoisonError::into_inner);
    sound.upgrade().unwrap_or_else(|| {
        let cluster = Arc::new(sound_cluster().start());
        wait_for_replicas(&cluster, 2);
        *sound = Arc::downgrade(&cluster);
        cluster
    })
}

/// A master names a replica once that has something of it.
fn wait_for_replicas(cluster: &Cluster, count: usize) {
    let first = cluster.first_masters().next().unwrap().admin();
    for (number, master) in cluster.first_masters().enumerate() {
        let (admin, name) = (master.admin(), cluster.name_at(master, "filler"));
        wait::until(LIMIT, || admin.try_command(&["SET", &name, "x", "PX", "1"]).is_ok());
        let is_named = || {
            let slots = first.command::<Vec<Vec<redis::Value>>>(&["CLUSTER", "SLOTS"]);
            slots[number].len() == 3 + count
        };
        wait::until(LIMIT, is_named);
    }
}

/// Masters without replicas, which have slots as long as they run.
fn masters(count: usize, server: ServerBuilder) -> Cluster {
    let builder = Cluster::builder().servers(server).shards(count).replicas(0);
    builder.node_timeout(LIMIT).start()
}

/// The findings of that kind: how bad, and at which server.
fn found(report: &Report, code: Code) -> Vec<(Severity, Option<String>)> {
    let of_code = report.findings().filter(|finding| finding.code() == code);
    let address = |finding: &Finding| finding.address().map(str::to_owned);
    of_code.map(|finding| (finding.severity(), address(finding))).collect()
}

fn at(severity: Severity, server: &Server) -> (Severity, Option<String>) {
    (severity, Some(server.addr().to_string()))
}

/// The same of each.
fn at_each<'a>(
    severity: Severity,
    servers: impl IntoIterator<Item = &'a Server>,
) -> Vec<(Severity, Option<String>)> {
    servers.into_iter().map(|server| at(severity, server)).collect()
}

#[tokio::test]
async fn a_sound_cluster_is_without_findings() {
    let cluster = sound();
    let report = check(&cluster.url()).await;
    assert_eq!(codes(&report), [], "{report}");
    assert_eq!((report.backend(), report.address()), (cluster.url().as_str(), None));
    let name = report.server().unwrap();
    assert!(name.starts_with("redis ") || name.starts_with("valkey "), "{name}");
    assert!(report.clock_difference().unwrap() < Duration::from_secs(1));
    for server in cluster.servers() {
        assert_eq!(server.admin().keys("*:probe:*"), [""; 0]);
    }
}

/// Replicas know the cluster as well as masters do.
#[tokio::test]
async fn a_replica_is_a_seed_like_any_other() {
    let cluster = sound();
    let replicas = cluster.servers().skip(2);
    assert_eq!(codes(&check(&cluster.url_of(replicas)).await), []);
}

#[tokio::test]
async fn one_seed_alone_is_a_note() {
    let cluster = sound();
    let report = check(&cluster.url_of(cluster.first_masters().take(1))).await;
    assert_eq!(codes(&report), [Code::OneAddress], "{report}");
    assert_eq!(only(&report, Code::OneAddress).severity(), Severity::Info);
}

/// All locks of such a prefix are in one slot, so that no other master is tried with one.
#[tokio::test]
async fn a_prefix_of_one_slot_is_tried_at_its_master() {
    let cluster = sound();
    let locker = patient(&cluster.url()).prefix("{shop}:").connect_lazy().unwrap();
    assert_eq!(codes(&locker.check().await), []);
}

#[tokio::test]
async fn what_endangers_locks_is_found_at_each_master() {
    let cluster = Cluster::shared();
    let report = check(&cluster.url()).await;
    let masters = at_each(Severity::Warning, cluster.first_masters());
    for code in [Code::NotPersistent, Code::UnconfirmedReplication] {
        assert_eq!(found(&report, code), masters, "{report}");
    }
    assert_eq!(codes(&report).len(), 2 * masters.len(), "{report}");
}

#[tokio::test]
async fn a_silent_seed_is_a_warning_and_all_are_errors() {
    let cluster = sound();
    let silent = |report: &Report, severity| {
        let silent = found(report, Code::SeedSilent);
        assert!(silent.iter().all(|found| *found == (severity, Some(DEAD.to_owned()))), "{report}");
        assert_eq!((codes(report).len(), silent.len()), (1, 1), "{report}");
    };
    silent(&check(&format!("{},{DEAD}", cluster.url())).await, Severity::Warning);
    silent(&check(&format!("redis-cluster://{DEAD}")).await, Severity::Error);
}

/// Nothing listens there.
const DEAD: &str = "127.0.0.1:1";

#[tokio::test]
async fn servers_that_are_no_nodes_are_named() {
    let (server, sentinel) = (Server::start(), Server::builder().sentinel().start());
    let advice = [
        (&server, Code::NotACluster, format!("write `{}/0`", server.url())),
        (&sentinel, Code::Sentinel, format!("write `redis-sentinel://{}/NAME`", sentinel.addr())),
    ];
    for (seed, code, advice) in advice {
        let report = check(&format!("redis-cluster://{}", seed.addr())).await;
        assert_eq!(found(&report, code), [at(Severity::Error, seed)], "{report}");
        assert!(only(&report, code).advice().starts_with(&advice), "{report}");
    }
}

#[tokio::test]
async fn seeds_of_different_clusters_are_an_error() {
    let (one, other) = (masters(1, Server::builder()), masters(1, Server::builder()));
    let (first, second) = (one.url(), other.servers().next().unwrap().addr());
    let report = check(&format!("{first},{second}")).await;
    let finding = only(&report, Code::SeedsDisagree);
    assert!(finding.message().starts_with(&second.to_string()), "{report}");
    assert!(!report.is_ok());
}

#[tokio::test]
async fn a_master_without_a_replica_is_a_warning() {
    let cluster = masters(2, Server::builder());
    let report = check(&cluster.url()).await;
    let expected = at_each(Severity::Warning, cluster.servers());
    assert_eq!(found(&report, Code::NoReplica), expected, "{report}");
    assert!(report.is_ok(), "{report}");
}

#[tokio::test]
async fn slots_without_a_master_are_an_error() {
    let cluster = masters(2, Server::builder().config("cluster-require-full-coverage", "no"));
    for server in cluster.servers() {
        server.admin().command::<()>(&["CLUSTER", "DELSLOTSRANGE", "0", "6"]);
    }
    let report = check(&cluster.url()).await;
    let finding = only(&report, Code::SlotsUncovered);
    assert!(finding.message().starts_with("7 of 16384 slots"), "{report}");
    assert_eq!((finding.severity(), finding.address()), (Severity::Error, None));
    assert_eq!(found(&report, Code::OperationFailed), [], "{report}");
}

#[tokio::test]
async fn an_address_that_refuses_is_worse_of_a_master() {
    let cluster = sound_cluster().start();
    wait_for_replicas(&cluster, 2);
    let servers: Vec<_> = cluster.servers().collect();
    let (master, replica) = (servers[1], servers[4]);
    replica.kill();
    let seed = cluster.url_of([servers[0], servers[2]]);
    let report = check(&seed).await;
    let code = Code::AddressesUnreachable;
    assert_eq!(found(&report, code), [at(Severity::Warning, replica)], "{report}");
    assert!(report.is_ok(), "{report}");
    master.kill();
    let report = check(&seed).await;
    let both = [at(Severity::Error, master), at(Severity::Warning, replica)];
    assert_eq!(found(&report, code), both, "{report}");
    let advice = report.findings().next().unwrap().advice().to_owned();
    assert!(advice.contains("`cluster-announce-ip`"), "{report}");
}

/// Goal: a node that takes its time hides nothing of the others.
#[tokio::test]
async fn a_frozen_master_is_found_among_the_others() {
    let cluster = masters(2, Server::builder());
    let [first, second] = cluster.servers().collect::<Vec<_>>()[..] else { panic!("two") };
    second.pause();
    let report = check_soon(&cluster.url_of([first])).await;
    second.resume();
    let unreachable = found(&report, Code::AddressesUnreachable);
    assert_eq!(unreachable, [at(Severity::Error, second)], "{report}");
    assert_eq!(found(&report, Code::NoReplica), [at(Severity::Warning, first)], "{report}");
}

#[tokio::test]
async fn clocks_that_differ_between_masters_are_a_warning() {
    let cluster = masters(2, Server::builder().clock());
    cluster.first_masters().next().unwrap().set_clock_back(Duration::from_millis(500));
    let report = check(&cluster.url()).await;
    let finding = only(&report, Code::ClocksDifferBetween);
    assert_eq!((finding.severity(), finding.address()), (Severity::Warning, None), "{report}");
    assert_eq!(found(&report, Code::ClockDiffers), [], "{report}");
    assert!(report.clock_difference().unwrap() > Duration::from_millis(400), "{report}");
}

/// Users are not replicated.
#[tokio::test]
async fn a_user_that_a_replica_lacks_is_a_warning() {
    let rules = format!("on >s3cr3t {}", rights(acl_line_of_nodes()).join(" "));
    let cluster = Cluster::builder().shards(1).replicas(1).user("app", &rules).start();
    wait_for_replicas(&cluster, 1);
    let replica = cluster.servers().last().unwrap();
    replica.admin().command::<()>(&["ACL", "DELUSER", "app"]);
    let report = check(&cluster.url_with("app", "s3cr3t")).await;
    // As a seed, and as a node.
    let refused = at_each(Severity::Warning, [replica, replica]);
    assert_eq!(found(&report, Code::Refused), refused, "{report}");
    assert!(!shown(&report).contains("s3cr3t"), "{report}");
}

#[tokio::test]
async fn a_cluster_over_tls_is_examined_too() {
    let tls = Tls::generate();
    let cluster = Cluster::builder().shards(1).replicas(1).mutual_tls(&tls).start();
    let builder = patient(&cluster.url()).root_certificate(tls.ca_pem());
    let own = tls.client();
    let locker = builder.client_certificate(own.certificate, own.key).connect_lazy().unwrap();
    let report = locker.check().await;
    assert!(report.is_ok() && report.server().is_some(), "{report}");
    let report = check(&cluster.url()).await;
    assert_eq!(codes(&report), [Code::Refused; 2], "{report}");
}

/// Goal: a check in a cluster harms no lock, and needs no restart.
#[tokio::test]
async fn a_check_leaves_the_locks_of_a_cluster_alone() -> Result<(), LockError> {
    let cluster = sound();
    let locker = connect(&cluster.url()).await;
    let guard = locker.lock("checked").acquire().await?;
    assert!(locker.check().await.is_ok());
    guard.release().await
}

/// Goal: servers on which no grant can be heard of have locks all the same.
#[tokio::test]
async fn servers_without_shard_channels_are_a_warning() {
    for command in ["spublish", "ssubscribe"] {
        let server = Server::builder().config("rename-command", &format!("{command} \"\""));
        let cluster = masters(1, server);
        let report = check(&cluster.url()).await;
        let master = cluster.servers().next().unwrap();
        assert_eq!(found(&report, Code::NoShardChannel), [at(Severity::Warning, master)]);
        assert!(only(&report, Code::NoShardChannel).message().contains(command), "{report}");
        assert!(report.is_ok(), "{report}");
        let locker = connect(&cluster.url()).await;
        let guard = locker.lock("k").acquire().await.unwrap();
        let waiting = tokio::spawn(async move { locker.lock("k").run(async {}).await });
        guard.release().await.unwrap();
        waiting.await.unwrap().unwrap();
    }
}
