//! A master that stops to answer and comes back.

use std::time::Duration;

use lockable_tests::Cluster;
use lockable_tests::sections::{is_clean_everywhere, renewed};

use crate::support::{LIMIT, patient};

/// Goal: connections that neither break nor answer cost no lease, and are left for good.
/// Method: the master is frozen while one lock is renewed and another is free. After the promotion of its
/// replica, the free one is acquired. Once the old master runs again, nothing leads there.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_master_costs_no_lease_and_is_left() {
    let cluster = Cluster::start();
    let builder = patient(&cluster.url()).command_deadline(DEADLINE).connect_deadline(DEADLINE);
    let locker = builder.connect().await.unwrap();
    let (kept, free) = (format!("{SLOT}kept"), format!("{SLOT}free"));
    let guard = locker.lock(&kept).expire(LEASE).renew().acquire().await.unwrap();
    let (before, replica) = (cluster.master_of(SLOT), cluster.replica_of(SLOT));
    before.pause();
    cluster.promoted(replica).await;
    cluster.set_node_timeout(LIMIT);
    // One request, of which the answer comes within the deadline.
    locker.lock(&free).try_acquire().await.unwrap().release().await.unwrap();
    before.resume();
    let again = locker.lock(&free).acquire().await.unwrap();
    renewed(&guard).await;
    assert!(guard.lease().is_held() && again.lease().is_held());
    for guard in [guard, again] {
        guard.release().await.unwrap();
    }
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

/// What the keys have in common, and so their slot.
const SLOT: &str = "{one}";

/// The nodes are asked who has the slot after a quarter of it, and may need longer than a second to say so.
const DEADLINE: Duration = Duration::from_secs(16);

/// It outlasts the failover, also on a busy machine.
const LEASE: Duration = Duration::from_secs(30);
