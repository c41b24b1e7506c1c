//! A master that stops to answer and comes back.

use std::time::Duration;

use lockable_tests::sections::{SOON, SWITCH, is_clean_everywhere, renewed};
use lockable_tests::{Cluster, Pace, Sections};

use crate::support::patient;

/// Goal: connections that neither break nor answer cost no lease, and are left for good.
/// Method: the master is frozen while one lock is renewed and another is free. After the promotion of its
/// replica, the free one is acquired. Once the old master runs again, nothing leads there.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_master_costs_no_lease_and_is_left() {
    let (cluster, sections) = (Cluster::start(), Sections::default());
    // On a busy machine the other masters may need longer than the usual second to say who has the slot.
    let builder = patient(&cluster.url()).command_deadline(DEADLINE);
    let locker = builder.connect().await.unwrap();
    let (kept, free) = (format!("{SLOT}kept"), format!("{SLOT}free"));
    let guard = locker.lock(&kept).expire(LEASE).renew().acquire().await.unwrap();
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

/// The nodes are asked who has the slot after a quarter of it.
const DEADLINE: Duration = Duration::from_secs(4);

/// It outlasts the failover.
const LEASE: Duration = Duration::from_secs(8);
