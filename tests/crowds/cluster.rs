//! Sixty-four busy tasks, a hundred renewed locks and two hundred waiters, while the masters of a cluster change.

use std::collections::HashSet;
use std::time::Duration;

use lockable_tests::sections::{SOON, SWITCH, is_clean_everywhere};
use lockable_tests::{Cluster, Pace, Server, cluster, wait};
use rstest::rstest;

use crate::alone;
use crate::load::{Crowd, Load, RECHECK, What, names_of_lost};

/// Without `cluster-require-full-coverage no` the servers themselves stop all shards between the moment at
/// which they take the master for dead and the promotion.
#[test]
fn a_killed_master_stalls_its_shard_alone() {
    alone(async {
        let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
        let load = Load::start(&cluster.url(), CROWD).await;
        let shard = cluster.shard_of(cluster.master_of(LINE));
        let elsewhere = |name: &str| !shard.has(name);
        let replica = cluster.replica_of(LINE);
        let usual = load.usual_failover().await;
        let usual_pause = load.sections.take_longest_pause_of(|_| true);
        let before = cluster.kill_master(LINE);
        cluster.promoted(replica).await;
        load.moves_after_a_failover(usual).await;
        let pause = load.sections.take_longest_pause_of(elsewhere);
        println!("other shards paused {pause:?}, before {usual_pause:?}");
        assert!(pause <= longest(usual_pause), "{pause:?} {usual_pause:?}");
        let (sections, mut faults) = load.end().await;
        // Calls of the shard itself may have failed meanwhile.
        faults.retain(|fault| fault.what == What::Lost || elsewhere(&fault.name));
        assert_eq!(faults, []);
        sections.assert_sound();
        assert_ne!(cluster.other_than(LINE, before).addr(), before.addr());
        is_clean_everywhere(&cluster).await;
    });
}

/// A primary stops all clients until its replica is elected: mostly for 50 ms, but for seconds where the machine stalls
/// and the nodes give the election up. So long a line may pause, too.
#[test]
fn a_planned_failover_costs_no_lease_and_little_waiting() {
    alone(async {
        let cluster = Cluster::start();
        let load = Load::start(&cluster.url(), CROWD).await;
        load.each_line_moves_twice().await;
        let usual_pause = load.sections.take_longest_pause_of(|_| true);
        let mut failover = Duration::ZERO;
        for line in 0..FAILOVERS {
            let pace = Pace::start();
            cluster.fail_over(&format!("disLock:line:{line}"));
            failover = failover.max(pace.elapsed());
            load.each_line_moves().await;
        }
        let pause = load.sections.take_longest_pause_of(|_| true);
        println!("longest pause {pause:?}, longest failover {failover:?}, before {usual_pause:?}");
        assert!(pause <= failover + longest(usual_pause), "{pause:?} {failover:?} {usual_pause:?}");
        ended_well(load).await;
        is_clean_everywhere(&cluster).await;
    });
}

/// Goal: locks of other shards do not notice.
/// Method: a master and its replica are frozen until all of their renewed locks are lost.
#[test]
fn exactly_the_leases_of_a_frozen_shard_end() {
    alone(async {
        let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
        let load = Load::start(&cluster.url(), Crowd { lease: LEASE, ..CROWD }).await;
        let shard = cluster.shard_of(cluster.master_of(LINE));
        let elsewhere = |name: &str| !shard.has(name);
        let doomed: HashSet<_> = load.held().filter(|name| shard.has(name)).collect();
        load.each_line_moves_twice().await;
        let usual_pause = load.sections.take_longest_pause_of(|_| true);
        let (frozen, pace) = (cluster.freeze_shard(LINE), Pace::start());
        wait::until_async(SWITCH, async || load.lost().len() >= doomed.len()).await;
        assert!(pace.elapsed() <= LEASE + SOON, "{:?}", pace.elapsed());
        // Those of the others are renewed, and would have ended too by now.
        let pause = load.sections.take_longest_pause_of(elsewhere);
        frozen.into_iter().for_each(Server::resume);
        cluster.wait_until_healthy();
        load.each_line_moves().await;
        println!("{} lost; other shards paused {pause:?}, before {usual_pause:?}", doomed.len());
        assert!(pause <= longest(usual_pause), "{pause:?} {usual_pause:?}");
        let (sections, mut faults) = load.end().await;
        assert_eq!(names_of_lost(&faults), doomed);
        faults.retain(|fault| elsewhere(&fault.name));
        assert_eq!(faults, []);
        sections.assert_sound();
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
        ended_well(load).await;
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

/// How long a line pauses at most whose server answers: one whose message is lost or late asks by itself.
fn longest(usual: Duration) -> Duration {
    RECHECK + SOON + 2 * usual
}

const CROWD: Crowd =
    Crowd { holders: 100, lease: Duration::from_secs(10), waiters: 200, lines: 20, tasks: 64 };

/// Its shard is the one that fails.
const LINE: &str = "disLock:line:0";

/// The lines belong to all shards.
const FAILOVERS: usize = 6;

/// It is over before the frozen nodes are.
const LEASE: Duration = Duration::from_secs(4);

/// A dozen of the keys are in them.
const SLOTS: usize = 1_000;

/// No renewed lock was lost, no call failed, and no two had a lock at the same time.
async fn ended_well(load: Load) {
    let (sections, faults) = load.end().await;
    assert_eq!(faults, []);
    sections.assert_sound();
}
