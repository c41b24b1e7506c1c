//! How long crowds of calls pause over failovers, beside what is usual on this machine.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Cluster, Sentinels, Server, wait};
use tokio::task::JoinSet;

use crate::{Figure, block_on};

use crate::crowds::load::{Crowd, LOCKERS, LONG, Load, What, connect, now};

/// The lines of a crowd over failovers of a group with Sentinels.
pub(crate) fn sentinel() -> Vec<Figure> {
    block_on(async {
        let mut figures = vec![killed_primary().await];
        figures.extend(planned_by_sentinels().await);
        figures
    })
}

/// The same over failovers of a cluster.
pub(crate) fn cluster() -> Vec<Figure> {
    block_on(async {
        let mut figures = killed_master().await;
        figures.push(planned_in_a_cluster().await);
        figures.extend(frozen_shard().await);
        figures
    })
}

/// A lock that was handed off just before may stay, and does so for its first lease, where its release reached the old
/// server alone; and a line whose grant was lost asks for it at its next recheck.
async fn killed_primary() -> Figure {
    let group = Sentinels::start();
    let load = Load::start(&group.url(), WITH_SENTINELS).await;
    let usual = usual_failover(&load, &group.url()).await;
    let mut switches = group.switches();
    group.kill_primary();
    switches.next().await;
    let moved = move_twice(&load).await;
    ended(load, &[What::Lost, What::Refused]).await;
    Figure::new("lines after a killed primary", moved, most_after_a_failover(usual))
}

/// The longest time in which no call of a crowd is served, and for how long a grant that the new primary never heard of
/// is believed.
async fn planned_by_sentinels() -> [Figure; 2] {
    let group = Sentinels::builder().at_usual_periods().start();
    let load = Load::start(&group.url(), WITH_SENTINELS).await;
    let mut switches = group.switches();
    let usual = load.sections.take_longest_pause();
    load.sections.fails_over();
    group.start_failover();
    switches.next().await;
    for _ in 0..3 {
        load.each_line_moves().await;
    }
    let pause = load.sections.take_longest_pause();
    let (sections, _) = load.end().await;
    let overlap = sections.assert_sound_but_for_lost_grants();
    [
        Figure::new("pause of all in a planned failover", pause, MOST + 2 * usual),
        Figure::new("overlap with a lost grant", overlap, SOON),
    ]
}

async fn killed_master() -> Vec<Figure> {
    let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
    let load = Load::start(&cluster.url(), IN_A_CLUSTER).await;
    let shard = cluster.shard_of(cluster.master_of(LINE));
    let replica = cluster.replica_of(LINE);
    let usual = usual_failover(&load, &cluster.url()).await;
    let usual_pause = load.sections.take_longest_pause_of(|_| true);
    cluster.kill_master(LINE);
    cluster.promoted(replica).await;
    let moved = move_twice(&load).await;
    let pause = load.sections.take_longest_pause_of(|name| !shard.has(name));
    ended(load, &[What::Lost]).await;
    vec![
        Figure::new("lines after a killed master", moved, most_after_a_failover(usual)),
        Figure::new("other shards after a killed master", pause, longest(usual_pause)),
    ]
}

/// A primary stops all clients until its replica is elected: mostly for 50 ms. So long a line may pause, too.
async fn planned_in_a_cluster() -> Figure {
    let cluster = Cluster::start();
    let load = Load::start(&cluster.url(), IN_A_CLUSTER).await;
    load.each_line_moves().await;
    let usual = load.sections.take_longest_pause_of(|_| true);
    let mut failover = Duration::ZERO;
    for line in 0..FAILOVERS {
        let start = now();
        cluster.fail_over(&format!("disLock:line:{line}"));
        failover = failover.max(start.elapsed());
        load.each_line_moves().await;
    }
    let pause = load.sections.take_longest_pause_of(|_| true);
    ended(load, &ALL).await;
    Figure::new("a line in planned failovers", pause, failover + longest(usual))
}

/// Until the renewed locks of a shard are lost whose nodes stand still, and the lines of other shards meanwhile.
async fn frozen_shard() -> [Figure; 2] {
    let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
    let load = Load::start(&cluster.url(), Crowd { lease: LEASE, ..IN_A_CLUSTER }).await;
    let shard = cluster.shard_of(cluster.master_of(LINE));
    let doomed = load.held().filter(|name| shard.has(name)).count();
    load.each_line_moves().await;
    let usual = load.sections.take_longest_pause_of(|_| true);
    let (frozen, start) = (cluster.freeze_shard(LINE), now());
    wait::until_async(wait::HANG, async || load.lost().len() >= doomed).await;
    let took = start.elapsed();
    let pause = load.sections.take_longest_pause_of(|name| !shard.has(name));
    frozen.into_iter().for_each(Server::resume);
    cluster.wait_until_healthy();
    load.end().await;
    [
        Figure::new(
            "losses in a shard that stands still",
            took,
            LEASE + Duration::from_millis(100),
        ),
        Figure::new("other shards beside one that stands still", pause, longest(usual)),
    ]
}

async fn move_twice(load: &Load) -> Duration {
    let start = now();
    load.each_line_moves().await;
    start.elapsed()
}

/// How long it takes until each line has moved twice and as many new lockers as there are have connected, which
/// after a failover they do.
async fn usual_failover(load: &Load, url: &str) -> Duration {
    let start = now();
    load.each_line_moves().await;
    let mut newcomers = JoinSet::new();
    for _ in 0..LOCKERS {
        let url = url.to_owned();
        newcomers.spawn(async move { newcomer(connect(&url).await).await });
    }
    newcomers.join_all().await;
    start.elapsed()
}

async fn newcomer(locker: Locker) {
    let guard = locker.lock("newcomers").wait(LONG).acquire().await.expect("it waits");
    guard.release().await.expect("it is held");
}

/// A figure of calls of which some failed is none.
async fn ended(load: Load, kinds: &[What]) {
    let (sections, mut faults) = load.end().await;
    faults.retain(|fault| kinds.contains(&fault.what));
    assert_eq!(faults, []);
    sections.assert_sound();
}

fn most_after_a_failover(usual: Duration) -> Duration {
    FIRST_LEASE + RECHECK + SOON + 2 * usual
}

/// How long a line pauses at most whose server answers: one whose message is lost or late asks by itself.
fn longest(usual: Duration) -> Duration {
    RECHECK + SOON + 2 * usual
}

const WITH_SENTINELS: Crowd =
    Crowd { holders: 100, lease: LONG, waiters: 1_000, lines: 20, tasks: 0 };

const IN_A_CLUSTER: Crowd = Crowd { holders: 100, lease: LONG, waiters: 200, lines: 20, tasks: 64 };

/// Its shard is the one that fails.
const LINE: &str = "disLock:line:0";

/// The lines belong to all shards.
const FAILOVERS: usize = 6;

const LEASE: Duration = Duration::from_secs(4);

/// Nothing went wrong, also with locks that were handed off: on a quiet machine none is lost.
const ALL: [What; 5] =
    [What::Lost, What::Refused, What::Interrupted, What::HandOff, What::Unreleased];

/// How long a lock lasts that was handed off, until its holder renews it.
const FIRST_LEASE: Duration = Duration::from_secs(1);

/// After this long a line asks by itself.
const RECHECK: Duration = Duration::from_millis(800);

/// What no one waits for takes at most.
const SOON: Duration = Duration::from_millis(500);

/// The longest time in which none of the calls is served, beside what is usual on this machine.
const MOST: Duration = Duration::from_millis(500);
