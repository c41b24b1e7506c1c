//! What a check says of the nodes of a cluster.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::Pem;
use lockable_runtime::check::{Code, Severity};
use lockable_tests::{Cluster, Server, ServerBuilder, Shared, Tls, wait};

use super::{at_each, check, check_soon, codes, found, hands_off, only, shown};
use crate::support::{LIMIT, acl_line_of_nodes, ample, connect_ample, rights};

/// A cluster without a fault.
fn sound_cluster() -> Cluster {
    let cluster = Cluster::builder().shards(2).replicas(4).steady();
    let cluster = cluster.config("appendonly", "yes").config("appendfsync", "always");
    let cluster = cluster.config("min-replicas-to-write", "1").start();
    wait_for_replicas(&cluster, 2);
    cluster
}

/// One that several tests use, and none harms.
fn sound() -> Arc<Cluster> {
    static SOUND: Shared<Cluster> = Shared::unstarted();
    SOUND.get(sound_cluster)
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
    Cluster::builder().servers(server).shards(count).replicas(0).steady().start()
}

#[tokio::test]
async fn a_sound_cluster_is_without_findings() {
    let cluster = sound();
    let locker = connect_ample(&cluster.url()).await;
    let guard = locker.lock("checked").acquire().await.unwrap();
    let report = locker.check().await;
    assert_eq!(codes(&report), [], "{report}");
    assert!(report.to_string().contains(&format!("locks on {},", cluster.url())), "{report}");
    assert_eq!(report.address(), None);
    let name = report.server().unwrap();
    assert!(name.starts_with("redis ") || name.starts_with("valkey "), "{name}");
    assert!(report.clock_difference().unwrap() < LIMIT);
    for server in cluster.servers() {
        assert_eq!(server.admin().keys("*:probe:*"), [""; 0]);
    }
    guard.release().await.unwrap();
}

/// Replicas know the cluster as well as masters do. All locks of a prefix with a tag are in one slot, so that no other
/// master is tried with one.
#[tokio::test]
async fn replicas_are_seeds_and_a_prefix_may_be_of_one_slot() {
    let cluster = sound();
    let locker = ample(&cluster.url_of(cluster.servers().skip(2))).prefix("{shop}:");
    assert_eq!(codes(&locker.connect_lazy().unwrap().check().await), []);
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
async fn a_silent_seed_is_a_warning() {
    let cluster = sound();
    let report = check(&format!("{},127.0.0.1:1", cluster.url())).await;
    let silent = [(Severity::Warning, Some("127.0.0.1:1".to_owned()))];
    assert_eq!(found(&report, Code::SeedSilent), silent, "{report}");
    assert_eq!(codes(&report).len(), 1, "{report}");
}

#[tokio::test]
async fn servers_that_are_no_nodes_are_named() {
    let (server, sentinel) = (Server::start(), Server::builder().sentinel().start());
    let advice = [
        (&server, Code::NotACluster, format!("write `{}/0`", server.url())),
        (&sentinel, Code::Sentinel, format!("write `redis-sentinel://{}/NAME`", sentinel.addr())),
    ];
    for (seed, code, advice) in advice {
        let report = check(&format!("redis-cluster://{}", seed.addr())).await;
        assert_eq!(found(&report, code), at_each(Severity::Error, [seed]), "{report}");
        assert!(only(&report, code).advice().starts_with(&advice), "{report}");
    }
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
    let cluster = sound_cluster();
    let servers: Vec<_> = cluster.servers().collect();
    let (master, replica) = (servers[1], servers[4]);
    replica.kill();
    let seed = cluster.url_of([servers[0], servers[2]]);
    let report = check(&seed).await;
    let code = Code::AddressesUnreachable;
    assert_eq!(found(&report, code), at_each(Severity::Warning, [replica]), "{report}");
    assert!(report.is_ok(), "{report}");
    master.kill();
    let report = check(&seed).await;
    let both = [at_each(Severity::Error, [master]), at_each(Severity::Warning, [replica])].concat();
    assert_eq!(found(&report, code), both, "{report}");
    let advice = report.findings().next().unwrap().advice().to_owned();
    assert!(advice.contains("`cluster-announce-ip`"), "{report}");
}

/// Goal: a node that takes its time hides nothing of the others, such as that they have no replica.
#[tokio::test]
async fn a_frozen_master_is_found_among_the_others() {
    let cluster = masters(2, Server::builder());
    let [first, second] = cluster.servers().collect::<Vec<_>>()[..] else { panic!("two") };
    second.pause();
    let report = check_soon(&cluster.url_of([first])).await;
    let unreachable = found(&report, Code::AddressesUnreachable);
    assert_eq!(unreachable, at_each(Severity::Error, [second]), "{report}");
    assert_eq!(found(&report, Code::NoReplica), at_each(Severity::Warning, [first]), "{report}");
}

#[tokio::test]
async fn clocks_that_differ_between_masters_are_a_warning() {
    let cluster = masters(2, Server::builder().clock());
    cluster.first_masters().next().unwrap().set_clock_back(Duration::from_millis(500));
    let report = check(&cluster.url()).await;
    let finding = only(&report, Code::ClocksDifferBetween);
    assert_eq!((finding.severity(), finding.address()), (Severity::Warning, None), "{report}");
    assert_eq!(found(&report, Code::ClockDiffers), [], "{report}");
    assert!(report.clock_difference().unwrap() > Duration::from_millis(250), "{report}");
}

/// Users are not replicated.
#[tokio::test]
async fn a_user_that_a_replica_lacks_is_a_warning() {
    let rules = format!("on >s3cr3t {}", rights(acl_line_of_nodes()).join(" "));
    let cluster = Cluster::builder().shards(1).replicas(1).steady().user("app", &rules).start();
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
    let cluster = Cluster::builder().shards(1).replicas(1).steady().mutual_tls(&tls).start();
    let builder = ample(&cluster.url()).root_certificate(tls.roots());
    let own = tls.client();
    let locker = builder.client_certificate(Pem::from(own)).connect_lazy().unwrap();
    let report = locker.check().await;
    assert!(report.is_ok() && report.server().is_some(), "{report}");
    let report = check(&cluster.url()).await;
    assert_eq!(codes(&report), [Code::Refused; 2], "{report}");
}

/// Goal: servers on which no grant can be heard of have locks all the same.
#[tokio::test]
async fn servers_without_shard_channels_are_a_warning() {
    for command in ["spublish", "ssubscribe"] {
        let server = Server::builder().config("rename-command", &format!("{command} \"\""));
        let cluster = masters(1, server);
        let report = check(&cluster.url()).await;
        let master = cluster.servers().next().unwrap();
        assert_eq!(found(&report, Code::NoShardChannel), at_each(Severity::Warning, [master]));
        assert!(only(&report, Code::NoShardChannel).message().contains(command), "{report}");
        assert!(report.is_ok(), "{report}");
        hands_off(&cluster.url(), master).await;
    }
}
