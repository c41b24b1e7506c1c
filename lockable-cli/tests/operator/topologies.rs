//! The same where several servers have the locks: in a cluster, and behind Sentinels.

use std::process::Stdio;

use lockable_tests::{Cluster, Proxy, Sentinels, Server};

use super::holders::service_at;
use super::watch::Watch;
use crate::program::{LIMIT, impatient, lockable, outcome, run, with};

#[test]
fn the_locks_of_every_node_are_shown_and_released() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let url = cluster.url();
    let masters: Vec<_> = cluster.first_masters().collect();
    let keys: Vec<_> = masters.iter().map(|master| key_at(&cluster, master)).collect();
    let holders: Vec<_> = keys.iter().map(|key| service_at(&url, "shop", key, &[])).collect();
    let (code, said, _) = with(&url, &["ls"]);
    let listed = |key: &String| said.lines().any(|row| row.starts_with(&format!("{key} ")));
    assert!(code == 0 && keys.iter().all(listed), "{said}");
    for (key, holder) in keys.iter().zip(holders) {
        let (code, said, _) = with(&url, &["show", key]);
        assert!(code == 0 && said.contains("process  shop@"), "{said}");
        let mut waits = lockable(&url);
        let mut waits = waits.args(["wait", key]).stdout(Stdio::null()).spawn().unwrap();
        let (code, said, why) = with(&url, &["release", key, "--grace", "1m"]);
        assert!(code == 0 && said.contains(&format!("{key}: released by ")), "{said}{why}");
        assert_eq!(holder.end().0, Some(124));
        assert_eq!(waits.wait().unwrap().code(), Some(0));
        assert_eq!(with(&url, &["show", key]).0, 3);
    }
}

#[test]
fn a_dead_node_hides_no_other_nodes_locks() {
    // The node that is left would refuse all once it took the other one for dead.
    let cluster = Cluster::builder().shards(2).replicas(0).node_timeout(2 * LIMIT);
    let cluster = cluster.config("cluster-require-full-coverage", "no").start();
    let [dead, alive] = cluster.first_masters().collect::<Vec<_>>()[..] else { panic!("two") };
    let [lost, there] = [dead, alive].map(|master| key_at(&cluster, master));
    let holders = [&lost, &there].map(|key| service_at(&cluster.url(), "shop", key, &[]));
    let mut watch = Watch::start(&cluster.url(), &["ls", "--watch=100ms"]);
    let mut lines = std::iter::repeat_with(|| watch.line());
    assert!(lines.any(|line| line.starts_with(&format!("   {lost} "))));
    dead.kill();
    // Whether it is held is unknown, and that of the other one is known.
    assert!(lines.any(|line| line.starts_with(&format!("?  {lost} "))));
    assert!(lines.any(|line| line.starts_with(&format!("   {there} "))));
    watch.end();
    for options in [&["ls"][..], &["ls", "--json"]] {
        let (code, said, why) = with(&cluster.url(), options);
        assert_eq!(code, 69, "{said}{why}");
        assert!(said.contains(&there) && !said.contains(&lost), "{said}");
        assert!(!why.is_empty());
    }
    drop(holders);
}

/// It would list the locks of that node alone, as if no others were held.
#[test]
fn one_node_of_several_is_refused_with_the_clusters_url() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let node = cluster.first_masters().next().unwrap();
    for arguments in [&["ls"][..], &["ls", "--json"], &["show", "a"], &["release", "a"]] {
        let (code, said, why) = with(&node.url(), arguments);
        assert_eq!((code, said.as_str()), (69, ""), "{why}");
        assert!(why.contains("one node of a cluster"), "{why}");
        assert!(why.contains(&format!("write `redis-cluster://{}`", node.addr())), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }
}

/// Each try takes half of `--timeout`.
#[test]
fn a_server_without_tls_is_tried_twice_at_most() {
    let server = Server::start();
    for arguments in
        [&["ls"][..], &["show", "a"], &["release", "a"], &["run", "--key", "a", "--", "true"]]
    {
        let proxy = Proxy::start(&server);
        let url = proxy.url().replacen("redis://", "rediss://", 1);
        let (code, _, why) = outcome(impatient(&url).args(arguments));
        assert_eq!(code, 69, "{why}");
        assert!(proxy.accepted() <= 2, "{arguments:?}: {}", proxy.accepted());
    }
}

/// The name of a lock that this node has.
pub(super) fn key_at(cluster: &Cluster, master: &Server) -> String {
    cluster.name_at(master, "disLock:order:").replacen("disLock:", "", 1)
}

#[test]
fn a_command_runs_under_a_lock_of_any_topology() {
    let (cluster, sentinels) = (Cluster::builder().replicas(0).start(), Sentinels::start());
    for url in [cluster.url(), sentinels.url()] {
        assert_eq!(outcome(&mut run(&url, &[], "exit 7")).0, 7);
        assert_eq!(with(&url, &["show", "job"]).0, 3, "it is released");
        assert_eq!(outcome(&mut run(&url, &["--expire", "1h", "--min-hold", "1h"], "true")).0, 0);
        let (code, said, _) = with(&url, &["show", "job"]);
        assert!(code == 0 && said.contains("min_hold"), "{said}");
        let (code, said, _) = with(&url, &["ls"]);
        assert!(code == 0 && said.contains("\njob "), "{said}");
    }
}
