//! Busy tasks, renewed locks and waiters, while the masters of a cluster change. How long lines pause then is in
//! `tests/timings/failovers.rs`.

use std::collections::HashSet;
use std::time::Duration;

use lockable_tests::sections::is_clean_everywhere;
use lockable_tests::wait::HANG;
use lockable_tests::{Cluster, Server, cluster, wait};
use rstest::rstest;

use crate::alone;
use crate::load::{Crowd, LONG, Load, What, names_of_lost};

/// Without `cluster-require-full-coverage no` the servers themselves stop all shards between the moment at
/// which they take the master for dead and the promotion.
#[test]
fn a_killed_master_costs_its_shard_alone() {
    alone(async {
        let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
        let load = Load::start(&cluster.url(), CROWD).await;
        let shard = cluster.shard_of(cluster.master_of(LINE));
        let replica = cluster.replica_of(LINE);
        let before = cluster.kill_master(LINE);
        cluster.promoted(replica).await;
        load.each_line_moves().await;
        // Calls of the shard itself may have failed meanwhile.
        let lost = ended_well(load, |name| !shard.has(name)).await;
        assert!(lost.is_empty(), "{lost:?}");
        assert_ne!(cluster.other_than(LINE, before).addr(), before.addr());
        is_clean_everywhere(&cluster).await;
    });
}

#[test]
fn planned_failovers_cost_no_lease_and_no_call() {
    alone(async {
        let cluster = Cluster::start();
        let load = Load::start(&cluster.url(), CROWD).await;
        for line in 0..FAILOVERS {
            cluster.fail_over(&format!("disLock:line:{line}"));
            load.each_line_moves().await;
        }
        ended_well(load, |_| true).await;
        is_clean_everywhere(&cluster).await;
    });
}

/// Goal: locks of other shards do not notice, and their lines move.
/// Method: a master and its replica are frozen until all of their renewed locks are lost, and longer.
#[test]
fn exactly_the_leases_of_a_frozen_shard_end() {
    alone(async {
        let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
        let load = Load::start(&cluster.url(), Crowd { lease: LEASE, ..CROWD }).await;
        let shard = cluster.shard_of(cluster.master_of(LINE));
        let elsewhere = |name: &str| !shard.has(name);
        let doomed: HashSet<_> = load.held().filter(|name| shard.has(name)).collect();
        let frozen = cluster.freeze_shard(LINE);
        // Those of the others are renewed, and would have ended too by then.
        wait::until_async(HANG, async || load.lost().len() >= doomed.len()).await;
        load.lines_move(elsewhere).await;
        frozen.into_iter().for_each(Server::resume);
        cluster.wait_until_healthy();
        load.each_line_moves().await;
        assert_eq!(ended_well(load, elsewhere).await, doomed);
        is_clean_everywhere(&cluster).await;
    });
}

/// Goal: the operator's tool is not disturbed by keys that appear where it moves them, and no one is by it; also
/// where the servers move slots with all that is in them, as some since 2025 can.
/// Method: without the tool, or where they cannot, the harness moves them one by one.
#[rstest]
#[case::by_the_tool(by_tool)]
#[case::at_once(at_once)]
fn slots_that_move_to_and_fro_cost_no_lease(#[case] move_slots: fn(&Cluster, &Server, &Server)) {
    alone(async {
        let cluster = Cluster::start();
        let load = Load::start(&cluster.url(), CROWD).await;
        let [one, _, other] = cluster.first_masters().collect::<Vec<_>>()[..] else {
            unreachable!()
        };
        for (from, to) in [(other, one), (one, other)] {
            move_slots(&cluster, from, to);
            load.each_line_moves().await;
        }
        ended_well(load, |_| true).await;
        is_clean_everywhere(&cluster).await;
    });
}

fn by_tool(cluster: &Cluster, from: &Server, to: &Server) {
    if cluster::has_tool() {
        cluster.reshard_by_tool(SLOTS, from, to).unwrap();
    } else {
        cluster.reshard(SLOTS, from, to).unwrap();
    }
}

fn at_once(cluster: &Cluster, from: &Server, to: &Server) {
    cluster.move_at_once(SLOTS, from, to).unwrap();
}

const CROWD: Crowd = Crowd { holders: 32, lease: LONG, waiters: 112, lines: 14, tasks: 14 };

/// Its shard is the one that fails.
const LINE: &str = "disLock:line:0";

/// The lines belong to all shards.
const FAILOVERS: usize = 6;

/// It is over before the frozen nodes are, and is renewed in time where the machine stalls for seconds.
const LEASE: Duration = Duration::from_secs(5);

/// A line, a task and two renewed locks of the crowd are in them.
const SLOTS: usize = 600;

/// No renewed lock was lost and no call failed of those that are meant, and no two had a lock at the same time. Returns
/// the renewed locks that were lost.
async fn ended_well(load: Load, are_meant: impl Fn(&str) -> bool) -> HashSet<String> {
    let (sections, mut faults) = load.end().await;
    let lost = names_of_lost(&faults);
    faults.retain(|fault| fault.what != What::HandOff && are_meant(&fault.name));
    assert_eq!(faults, []);
    sections.assert_sound();
    lost
}
