//! Sixty-four busy tasks, a hundred renewed locks and two hundred waiters, while the masters change.

use std::sync::Arc;

use lockable_tests::{Cluster, Pace, Server, cluster};

use super::support::{CROWD, Shard, alone, is_clean_everywhere};
use crate::load::{Fault, Faults, Load};
use crate::sections::{SOON, Sections};

/// Without `cluster-require-full-coverage no` the servers themselves stop all shards between the moment at
/// which they take the master for dead and the promotion.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_master_stalls_its_shard_alone() {
    let _alone = alone().await;
    let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
    let load = Load::start(&cluster.url(), CROWD).await;
    let name = "disLock:line:0";
    let shard = Shard::of(&cluster, cluster.master_of(name));
    let elsewhere = |name: &str| !shard.has(name);
    let replica = cluster.replica_of(name);
    load.sections.take_longest_pause_of(|_| true);
    let before = cluster.kill_master(name);
    cluster.promoted(replica).await;
    let pace = Pace::start();
    load.each_line_moves().await;
    // The first ones may have been served before, and have ended after it.
    load.each_line_moves().await;
    let (moved, pause) = (pace.elapsed(), load.sections.take_longest_pause_of(elsewhere));
    println!("every line moves twice {moved:?} after the promotion; other shards paused {pause:?}");
    assert!(moved <= SOON, "{moved:?}");
    assert!(pause <= SOON, "{pause:?}");
    let (sections, faults) = ended(load).await;
    assert_eq!(faults.lost, []);
    assert_eq!(faults.of(elsewhere), NONE);
    sections.assert_sound();
    assert_ne!(cluster.other_than(name, before).addr(), before.addr());
    is_clean_everywhere(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_failover_costs_no_lease_and_little_waiting() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    let load = Load::start(&cluster.url(), CROWD).await;
    load.sections.take_longest_pause_of(|_| true);
    for line in 0..FAILOVERS {
        cluster.fail_over(&format!("disLock:line:{line}"));
        load.each_line_moves().await;
    }
    let pause = load.sections.take_longest_pause_of(|_| true);
    println!("longest pause {pause:?}");
    assert!(pause <= 2 * SOON, "{pause:?}");
    ended_well(load).await;
    is_clean_everywhere(&cluster).await;
}

/// Goal: the operator's tool is not disturbed by keys that appear where it moves them, and no one is by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_the_slots_moves_to_and_fro() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    let load = Load::start(&cluster.url(), CROWD).await;
    let [one, .., other] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    let count = if moves_slots_fast(one) { THIRD } else { FEW };
    for (from, to) in [(other, one), (one, other)] {
        if cluster::has_tool() {
            cluster.reshard_by_tool(count, from, to).unwrap();
        } else {
            cluster.reshard(count, from, to).unwrap();
        }
        load.each_line_moves().await;
    }
    ended_well(load).await;
    is_clean_everywhere(&cluster).await;
}

/// Goal: nothing is lost where the servers move slots with all that is in them, as some since 2025 can.
/// Method: those that cannot move them one by one, without the tool.
#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_at_once_cost_no_lease() {
    let _alone = alone().await;
    let cluster = Cluster::start();
    let load = Load::start(&cluster.url(), CROWD).await;
    let [one, other, _] = cluster.first_masters().collect::<Vec<_>>()[..] else { unreachable!() };
    for (from, to) in [(one, other), (other, one)] {
        cluster.move_at_once(FEW, from, to).unwrap();
        load.each_line_moves().await;
    }
    ended_well(load).await;
    is_clean_everywhere(&cluster).await;
}

/// The lines belong to all shards.
const FAILOVERS: usize = 6;

/// A third of all slots, and less than the last master has: one that has none would become a replica.
const THIRD: usize = 5_461;

const FEW: usize = 500;

/// Servers since 7.2 take several milliseconds for each slot.
fn moves_slots_fast(server: &Server) -> bool {
    server.admin().info("server").contains("redis_version:7.0.")
}

async fn ended(load: Load) -> (Arc<Sections>, Faults) {
    let sections = Arc::clone(&load.sections);
    let faults = load.end().await;
    println!("{} sections, {}", sections.finished(), faults.counts());
    (sections, faults)
}

/// No renewed lock was lost, no call failed, and no two had a lock at the same time.
async fn ended_well(load: Load) {
    let (sections, faults) = ended(load).await;
    assert_eq!(faults.of(|_| true), NONE);
    sections.assert_sound();
}

const NONE: [&Fault; 0] = [];
