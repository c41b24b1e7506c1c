//! The nodes that a URL names, and those that it does not.

use lockable_runtime::Locker;
use lockable_tests::{Cluster, Proxy, Server, wait};
use rstest::rstest;

use crate::support::{LIMIT, LONG, ample, connect_ample, impatient};

/// By its address, and one by a name.
#[tokio::test]
async fn each_node_alone_leads_to_all_masters() {
    let cluster = Cluster::shared();
    let first = cluster.servers().next().unwrap().addr().port();
    let seeds = cluster.servers().map(|seed| cluster.url_of([seed]));
    let seeds = seeds.chain([format!("redis-cluster://localhost:{first}")]);
    for (number, seed) in seeds.enumerate() {
        locks(&format!("{seed}?prefix=alone{number}:")).await;
    }
}

/// Goal: a service outlives a cluster whose nodes are all replaced by others, behind one name.
#[tokio::test]
async fn new_nodes_are_found_by_the_seeds_name() {
    let of_one = || Cluster::builder().shards(1).replicas(0).steady().start();
    let (old, new) = (of_one(), of_one());
    let [old, new] = [&old, &new].map(|cluster| cluster.servers().next().unwrap());
    let name = Proxy::start(old);
    let locker = connect_ample(&format!("redis-cluster://{}", name.addr())).await;
    locker.lock("k").try_run(async {}).await.unwrap();
    old.kill();
    name.redirect(new);
    let works = async || locker.lock("k").try_run(async {}).await.is_ok();
    wait::until_async(LIMIT, works).await;
}

/// Goal: a locker connects while one of the masters is away.
/// Method: often enough that no order of the masters hides the dead one. The other never takes the dead one for failed,
/// because one of two is no majority.
#[tokio::test]
async fn a_dead_master_hinders_no_connection() {
    let builder = Cluster::builder().shards(2).replicas(0).steady();
    let cluster = builder.config("cluster-require-full-coverage", "no").start();
    let [dead, other] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let name = cluster.name_at(other, "disLock:");
    dead.kill();
    for _ in 0..10 {
        let locker = connect_ample(&cluster.url_of([other])).await;
        let key = name.trim_start_matches("disLock:");
        locker.lock(key).try_run(async {}).await.unwrap();
    }
}

/// Goal: most masters, or all, die at once, and the URL names none of the replicas that are promoted.
/// Method: one that is left is a minority of the masters, so what it says needs the replicas' word.
#[rstest]
#[case::most(1)]
#[case::all(0)]
#[tokio::test]
async fn replicas_of_dead_masters_are_found_by_the_map(#[case] left: usize) {
    let cluster = Cluster::builder().steady().start();
    let masters: Vec<_> = cluster.first_masters().collect();
    let names = [0, 1, 2].map(|number| cluster.name_at(masters[number], "disLock:"));
    // A map names a replica once that has received something, and what is written before it is there does not count.
    for (master, name) in masters.iter().zip(&names) {
        let admin = master.admin();
        wait::until(LONG, || admin.info("replication").contains("state=online"));
        admin.set(name, "");
        admin.del(name);
    }
    let map = || masters[0].admin().command::<Vec<Vec<redis::Value>>>(&["CLUSTER", "SLOTS"]);
    wait::until(LONG, || map().iter().all(|shard| shard.len() > 3));
    // A dead node is tried until a deadline.
    let locker = impatient(&cluster.url_of([masters[0]])).connect_lazy().unwrap();
    let keys = names.each_ref().map(|name| name.trim_start_matches("disLock:"));
    work(&locker, &keys).await;
    let replicas = names.each_ref().map(|name| cluster.replica_of(name).admin());
    masters[left..].iter().for_each(|master| master.kill());
    for replica in &replicas[left..] {
        replica.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    }
    work(&locker, &keys).await;
}

/// Goal: most masters die at once, and their replicas have come since the locker asked for the map.
/// Method: the master that is left is a minority, and names them once they have taken over.
#[tokio::test]
async fn nodes_that_came_later_take_over_from_dead_masters() {
    let cluster = Cluster::builder().replicas(0).strangers(2).steady().start();
    let masters: Vec<_> = cluster.first_masters().collect();
    let names = [1, 2].map(|number| cluster.name_at(masters[number], "disLock:"));
    let keys = names.each_ref().map(|name| name.trim_start_matches("disLock:"));
    // A dead node is tried until a deadline.
    let locker = impatient(&cluster.url_of([masters[0]])).connect_lazy().unwrap();
    work(&locker, &keys).await;
    let replicas = [1, 2].map(|number| (masters[number], cluster.join().admin()));
    for (master, replica) in &replicas {
        let id = master.admin().command::<String>(&["CLUSTER", "MYID"]);
        wait::until(LONG, || replica.try_command(&["CLUSTER", "REPLICATE", &id]).is_ok());
        wait::until(LONG, || replica.info("replication").contains("master_link_status:up"));
    }
    masters[1..].iter().for_each(|master| master.kill());
    for (_, replica) in &replicas {
        replica.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    }
    work(&locker, &keys).await;
}

/// Waits until each of the locks can be taken.
async fn work(locker: &Locker, keys: &[&str]) {
    for &key in keys {
        let works = async || locker.lock(key).try_run(async {}).await.is_ok();
        wait::until_async(LONG, works).await;
    }
}

/// No one waits for a seed that gives no answer while another one has given it.
#[tokio::test]
async fn a_dead_and_a_frozen_seed_cost_nothing() {
    let cluster = Cluster::shared();
    let (dead, frozen) = (Server::start(), Server::start());
    dead.kill();
    frozen.pause();
    let last = cluster.servers().last().unwrap();
    let url = format!("{}?prefix=dead:", cluster.url_of([&dead, &frozen, last]));
    let locker = wait::ends(connect_ample(&url)).await;
    locker.lock("k").try_run(async {}).await.unwrap();
}

#[tokio::test]
async fn dead_seeds_alone_are_unavailable() {
    let (one, other) = (Server::start(), Server::start());
    one.kill();
    other.kill();
    let url = format!("redis-cluster://{},{}", one.addr(), other.addr());
    let error = ample(&url).connect().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains(&one.addr().to_string()), "{error}");
}

#[tokio::test]
async fn a_cluster_that_is_down_can_be_connected_to_later() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let [lost, left] = cluster.first_masters().collect::<Vec<_>>()[..] else { panic!() };
    lost.kill();
    let admin = left.admin();
    let is_down = || admin.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:fail");
    wait::until(LIMIT, is_down);
    let error = ample(&cluster.url()).connect().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    lost.restart();
    cluster.wait_until_healthy();
    cluster.set_node_timeout(LIMIT);
    locks(&cluster.url()).await;
}

/// A node that is not part of a cluster yet has no slots.
#[tokio::test]
async fn a_node_without_slots_is_no_cluster_yet() {
    let node = Server::builder().config("cluster-enabled", "yes").start();
    let url = format!("redis-cluster://{}", node.addr());
    let error = ample(&url).connect().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

/// Locks of many slots, so that every master has some.
async fn locks(url: &str) {
    let locker = connect_ample(url).await;
    for number in 0..20 {
        locker.lock(format!("k{number}")).try_run(async {}).await.unwrap();
    }
}
