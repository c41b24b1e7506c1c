//! Leases of very different lengths, which are due at the same moment.

use std::time::Duration;

use lockable_tests::{Answer, Cue, Server, StubNodes, wait};

use crate::cancellation::late_requests::overtake;
use crate::runtimes::two_threads;
use crate::support::{LIMIT, connect_ample};

/// Goal: a lease that is lost because it waits for its renewal as long as a longer one may.
/// Method: a connection that opens has both checked at once, over that of the background. There the longer one is
/// never answered, nor is anything behind it.
#[tokio::test]
async fn a_short_lease_does_not_wait_for_a_long_one() {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let locker = connect_ample(&stub_nodes.url_of(0)).await;
    // The background is connected from now on.
    overtake(&locker).await;
    let long = locker.lock("{k}:long").renew().acquire().await.unwrap();
    let short = locker.lock("{k}:short").expire(SHORT).renew().acquire().await.unwrap();
    let about = Cue::of(["EVALSHA"]).about("disLock:{k}:long");
    stub_nodes.answer(0, about.times(1), Answer::Silence);
    let admin = server.admin();
    admin.command::<()>(&["PEXPIRE", "disLock:{k}:short", "12000"]);
    let (other, third) = (two_threads(), locker.clone());
    other.spawn(async move { third.lock("{k}:third").run(async {}).await }).await.unwrap().unwrap();
    wait::until_async(LIMIT, async || admin.pttl("disLock:{k}:short") > 12_000).await;
    assert!(long.lease().is_held() && short.lease().is_held());
    other.shutdown_background();
}

/// A try to renew it waits for its answer for a ninth of it, which is long before its lock ends at the server.
const SHORT: Duration = Duration::from_secs(18);
