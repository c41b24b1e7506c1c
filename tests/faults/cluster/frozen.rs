//! A shard that stops to answer and comes back.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use lockable_tests::{Cluster, Pace, Server, wait};

use super::support::{CROWD, Shard, alone, is_clean_everywhere};
use crate::load::{Crowd, Load};
use crate::sections::{SOON, SWITCH, Sections, renewed};
use crate::support::{MARGIN, connect, usable};

/// Goal: locks of other shards do not notice.
/// Method: a master and its replica are frozen until all of their renewed locks are lost.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_leases_of_a_frozen_shard_end() {
    let _alone = alone().await;
    let cluster = Cluster::builder().config("cluster-require-full-coverage", "no").start();
    let load = Load::start(&cluster.url(), Crowd { lease: LEASE, ..CROWD }).await;
    let name = "disLock:line:0";
    let shard = Shard::of(&cluster, cluster.master_of(name));
    let elsewhere = |name: &str| !shard.has(name);
    let doomed: HashSet<_> = load.held().filter(|name| shard.has(name)).collect();
    load.sections.take_longest_pause_of(|_| true);
    let (frozen, pace) = (cluster.freeze_shard(name), Pace::start());
    let lost = || load.faults().lost.len();
    wait::until_async(SWITCH, async || lost() >= doomed.len()).await;
    let most = usable(LEASE) + MARGIN;
    assert!(pace.elapsed() <= most, "{:?} of {most:?}", pace.elapsed());
    // Those of the others are renewed, and would have ended too by now.
    let pause = load.sections.take_longest_pause_of(elsewhere);
    frozen.into_iter().for_each(Server::resume);
    cluster.wait_until_healthy();
    load.each_line_moves().await;
    println!("{} lost; other shards paused {pause:?}", doomed.len());
    assert!(pause <= SOON, "{pause:?}");
    let sections = Arc::clone(&load.sections);
    let faults = load.end().await;
    println!("{}", faults.counts());
    let lost: HashSet<_> = faults.lost.iter().map(|fault| fault.name.clone()).collect();
    assert_eq!(lost, doomed);
    assert!(faults.of(elsewhere).is_empty(), "{:?}", faults.of(elsewhere));
    sections.assert_sound();
    is_clean_everywhere(&cluster).await;
}

/// Goal: connections that neither break nor answer cost no lease, and are left for good.
/// Method: the master is frozen while one lock is renewed and another is free. After the promotion of its
/// replica, the free one is acquired. Once the old master runs again, nothing leads there.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_master_costs_no_lease_and_is_left() {
    let cluster = Cluster::start();
    let (locker, sections) = (connect(&cluster.url()).await, Sections::default());
    let (kept, free) = (format!("{SLOT}kept"), format!("{SLOT}free"));
    let guard = locker.lock(&kept).expire(LONGER).renew().acquire().await.unwrap();
    sections.enter(&guard);
    let (before, replica) = (cluster.master_of(SLOT), cluster.replica_of(SLOT));
    before.pause();
    cluster.promoted(replica).await;
    let pace = Pace::start();
    let request = locker.lock(&free).wait_at_most(SWITCH);
    request.acquire().await.unwrap().release().await.unwrap();
    assert!(pace.elapsed() <= 2 * SOON, "{:?}", pace.elapsed());
    before.resume();
    let again = locker.lock(&free).acquire().await.unwrap();
    sections.enter(&again);
    renewed(&guard).await;
    assert!(guard.is_held() && again.is_held());
    for guard in [guard, again] {
        sections.leave(&guard);
        guard.release().await.unwrap();
    }
    sections.assert_sound();
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

/// What the keys have in common, and so their slot.
const SLOT: &str = "{one}";

/// It is over before the frozen nodes are.
const LEASE: Duration = Duration::from_secs(4);

/// It outlasts the failover.
const LONGER: Duration = Duration::from_secs(8);
