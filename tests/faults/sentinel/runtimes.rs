//! Several connections of one process never lead to two servers.

use std::time::Duration;

use lockable_runtime::LockGuard;
use lockable_tests::sections::is_clean;
use lockable_tests::{Proxy, Sentinels, Server};
use tokio::runtime::Builder;

use crate::support::{KEY, LONG, connect_ample, elapse};

/// Goal: a switch between the openings of two runtimes leads both to the new primary.
/// Method: nothing that the Sentinels publish arrives, so the first connection stays with the old primary
/// until the second one is opened, later than any answer is used again.
#[tokio::test]
async fn a_switch_between_two_openings_leads_both_to_one_server() {
    let group = Sentinels::builder().down_after(LONG).at_usual_periods().start();
    let stub_nodes = group.stub_nodes();
    let locker = connect_ample(&group.url_through(&stub_nodes)).await;
    let before = group.primary();
    assert!(is_at(before, locker.lock("k").acquire().await.unwrap()).await);
    stub_nodes.iter().for_each(Proxy::hold_messages);
    let after = group.fail_over();
    // The Sentinels make it a replica after some seconds, and then the locker leaves it.
    let is_replica = || before.admin().info("replication").contains("role:slave");
    assert!(is_at(before, locker.lock("k").acquire().await.unwrap()).await || is_replica());
    let other = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    elapse(Duration::from_millis(1_200)).await;
    let there = locker.lock("k").acquire();
    assert!(is_at(after, other.spawn(there).await.unwrap().unwrap()).await);
    assert!(is_at(after, locker.lock("k").acquire().await.unwrap()).await);
    is_clean(after).await;
    other.shutdown_background();
}

/// Whether the lock is held at that server; releases it.
async fn is_at(server: &Server, guard: LockGuard) -> bool {
    let is_there = server.admin().get(KEY).is_some();
    guard.release().await.unwrap();
    is_there
}
