//! A primary that has lost its replicas and its Sentinels, and still has a client.

use std::time::Duration;

use lockable_runtime::LockGuard;
use lockable_tests::sections::{is_clean, renewed};
use lockable_tests::{Sentinels, SentinelsBuilder};

use crate::support::{LONG, connect_ample};

/// The next holder waits for its end. It is renewed after a third of it: the rest is for a slow machine.
const LEASE: Duration = Duration::from_secs(6);

/// No client can prevent it: without settings of the servers, both primaries grant the same lock.
#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_primary_without_settings_has_a_second_holder() {
    let split = Split::of(Sentinels::builder(), "").await;
    assert!(
        split.old.lease().is_held() && split.new.lease().is_held(),
        "this is what the settings are for"
    );
    assert!(split.new.lease().fencing_token() > split.old.lease().fencing_token());
    split.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_least_number_of_replicas_ends_the_old_lease_first() {
    let builder = Sentinels::builder()
        .server_config("min-replicas-to-write", "1")
        .server_config("min-replicas-max-lag", "1");
    let split = Split::of(builder, "").await;
    assert!(split.old.lease().is_lost());
    split.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_that_no_replica_confirms_end_the_old_lease_first() {
    let split = Split::of(Sentinels::builder(), "?replicas=2").await;
    assert!(split.old.lease().is_lost());
    split.end().await;
}

/// A lock that one client holds at an isolated primary, and that another acquires at the new one.
struct Split {
    group: Sentinels,
    old: LockGuard,
    new: LockGuard,
}

impl Split {
    /// The settings are those of the first client alone.
    async fn of(builder: SentinelsBuilder, settings: &str) -> Self {
        let group = builder.user("app", "on >word ~* &* +@all").start();
        let stub_nodes = group.stub_nodes();
        // It could connect to the old primary again, but for the Sentinels, which it does not reach.
        let url = group.url_through(&stub_nodes).replace("://", "://app:word@") + settings;
        let old = connect_ample(&url).await.lock("k").expire(LEASE).renew().acquire().await;
        let old = old.unwrap();
        // From now on it has a connection for renewals.
        renewed(&old).await;
        for stub_node in &stub_nodes {
            stub_node.refuse();
            stub_node.cut();
        }
        let mut switches = group.switches();
        let before = group.isolate_primary();
        switches.next().await;
        group.set_down_after(LONG);
        group.other_than(before);
        let request = connect_ample(&group.url()).await.lock("k").wait(LONG);
        let new = request.acquire().await.unwrap();
        Self { group, old, new }
    }

    async fn end(self) {
        drop(self.old);
        self.new.release().await.unwrap();
        is_clean(self.group.primary()).await;
    }
}
