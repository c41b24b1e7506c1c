//! A primary that has lost its replicas and its Sentinels, and still has a client.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::{SWITCH, is_clean, renewed};
use lockable_tests::{Pace, Sections, Sentinels, SentinelsBuilder};

use crate::support::{MARGIN, usable};

/// A lease that lasts longer than a failover.
const LEASE: Duration = Duration::from_secs(4);

/// No client can prevent it: without settings of the servers, both primaries grant the same lock.
#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_primary_without_settings_has_a_second_holder() {
    let split = Split::of(Sentinels::builder()).await;
    assert!(split.old.is_held() && split.new.is_held(), "this is what the settings are for");
    assert!(split.new.fencing_token() > split.old.fencing_token());
    split.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_least_number_of_replicas_ends_the_old_lease_first() {
    let builder = Sentinels::builder()
        .server_config("min-replicas-to-write", "1")
        .server_config("min-replicas-max-lag", "1");
    let split = Split::of(builder).await;
    assert!(split.old.is_lost());
    split.sections.assert_sound();
    let most = usable(LEASE) + MARGIN;
    assert!(split.ended <= most, "{:?} of {most:?}", split.ended);
    split.end().await;
}

/// A lock that one client holds at an isolated primary, and that another acquires at the new one.
struct Split {
    group: Sentinels,
    old: LockGuard,
    new: LockGuard,
    sections: Sections,
    /// How long after the isolation either the old lease was lost, or the new one began.
    ended: Duration,
}

impl Split {
    async fn of(builder: SentinelsBuilder) -> Self {
        let group = builder.user("app", "on >word ~* &* +@all").start();
        let (doors, sections) = (group.doors(), Sections::default());
        // It could connect to the old primary again, but for the Sentinels, which it does not reach.
        let url = group.url_through(&doors).replace("://", "://app:word@");
        let cut_off = Locker::builder().url(url).expire(LEASE).connect().await.unwrap();
        let old = cut_off.lock("k").renew().acquire().await.unwrap();
        sections.enter(&old);
        renewed(&old).await;
        for door in &doors {
            door.refuse();
            door.cut();
        }
        let (before, isolated) = (group.isolate_primary(), Pace::start());
        let new = async {
            group.other_than(before);
            let locker = Locker::connect(&group.url()).await.unwrap();
            locker.lock("k").wait_at_most(SWITCH).acquire().await.unwrap()
        };
        let lease = old.lease();
        let lost = tokio::spawn(async move {
            lease.lost().await;
            isolated.elapsed()
        });
        let new = new.await;
        sections.enter(&new);
        let ended = if lost.is_finished() { lost.await.unwrap() } else { isolated.elapsed() };
        drop(doors);
        Self { group, old, new, sections, ended }
    }

    async fn end(self) {
        drop(self.old);
        self.new.release().await.unwrap();
        is_clean(self.group.primary()).await;
    }
}
