//! A primary that stops to answer and comes back.

use std::time::Duration;

use lockable_tests::sections::{is_clean, renewed};
use lockable_tests::{Sentinels, wait};

use crate::support::{KEY, LONG, patient};

/// Goal: connections that neither break nor answer cost no lease, and are left for good.
/// Method: the primary is frozen while one lock is renewed and another is free. After the switch, the free
/// one is acquired. Once the old primary runs again, nothing leads there, although it takes itself for the
/// primary for seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_primary_costs_no_lease_and_is_left() {
    let group = Sentinels::builder().at_usual_periods().start();
    let locker = patient(&group.url()).command_deadline(LONG).connect().await.unwrap();
    let kept = locker.lock("kept").expire(LEASE).renew().acquire().await.unwrap();
    let mut switches = group.switches();
    let before = group.primary();
    before.pause();
    switches.next().await;
    group.set_down_after(LONG);
    // A request that waits for an answer of the old primary would never end.
    let free = wait::ends(locker.lock("free").acquire()).await.unwrap();
    free.release().await.unwrap();
    before.resume();
    let after = group.other_than(before);
    let guard = locker.lock("k").acquire().await.unwrap();
    assert_eq!((before.admin().get(KEY), after.admin().get(KEY).is_some()), (None, true));
    renewed(&kept).await;
    assert!(kept.lease().is_held() && guard.lease().is_held());
    for guard in [kept, guard] {
        guard.release().await.unwrap();
    }
    is_clean(after).await;
}

/// It outlasts the failover, also on a busy machine.
const LEASE: Duration = Duration::from_secs(30);
