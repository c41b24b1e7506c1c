//! A server that answers late, because many processes connect to it again at the same moment.

use std::time::Duration;

use lockable_tests::wait;

use crate::support::{LIMIT, elapse, patient, server_and_proxy};

const CONNECT: Duration = Duration::from_secs(1);

/// Longer than any test.
const LEASE: Duration = Duration::from_secs(300);

/// Goal: the connection that renews is opened once, however slow that is, and before any other one.
/// Method: the answers to its probe are held back for longer than a connect deadline.
#[tokio::test]
async fn a_slow_connection_is_not_started_over() {
    let (server, proxy) = server_and_proxy();
    let locker = patient(&proxy.url()).connect_deadline(CONNECT).connect().await.unwrap();
    let guard = locker.lock("k").expire(LEASE).renew().acquire().await.unwrap();
    proxy.wait_for_command("SUBSCRIBE", 1, LIMIT).await;
    // The loss of its tracking has the lease be looked at again at once.
    let is_tracked = || server.admin().info("stats").contains("tracking_total_keys:1");
    wait::until_async(LIMIT, async || is_tracked()).await;
    // Leases that were checked just before are checked a moment later.
    elapse(CONNECT).await;
    let before = proxy.accepted();
    proxy.hold_answers_to("SET");
    proxy.cut();
    wait::until_async(LIMIT, async || proxy.accepted() > before).await;
    elapse(CONNECT * 2).await;
    assert_eq!(proxy.accepted(), before + 1);
    proxy.release_answers();
    // The subscription comes next.
    proxy.wait_for_command("SUBSCRIBE", 2, LIMIT).await;
    assert_eq!(proxy.accepted(), before + 2);
    guard.release().await.unwrap();
}
