//! Many renewed leases where commands about keys of several slots are refused.

use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::{Server, StubNodes, cluster, wait};
use rstest::rstest;
use tokio::task::JoinSet;

use crate::support::{LIMIT, ample, now};

/// What is asked for the locks, all of which are in one shard.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// By `redis://`, at the only node of a cluster.
    Node,
    /// By `redis-cluster://`, at the same.
    Cluster,
    /// By `redis://`, at a proxy that takes keys of one slot at a time.
    Proxy,
}

/// Goal: leases that are renewed together, and lost together where that is refused.
#[rstest]
#[case::of_the_only_node(Way::Node)]
#[case::of_a_cluster_of_one_node(Way::Cluster)]
#[case::behind_a_proxy_of_single_slots(Way::Proxy)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_leases_are_renewed(#[case] way: Way) {
    let server = match way {
        Way::Node | Way::Cluster => cluster::start(&Server::builder(), 1).remove(0),
        Way::Proxy => Server::start(),
    };
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let url = match way {
        Way::Node => server.url(),
        Way::Cluster => server.url().replace("redis://", "redis-cluster://"),
        Way::Proxy => stub_nodes.url_of(0),
    };
    let locker = ample(&url).expire(LEASE).connect().await.unwrap();
    let (guards, begun) = (hold(&locker).await, now());
    // Each is renewed twice: the second time by other commands, because the locker remembers what was refused.
    let is_renewed =
        |guard: &LockGuard| begun.elapsed() + guard.lease().remaining() > LEASE * 3 / 2;
    wait::until_async(LIMIT, async || guards.iter().all(is_renewed)).await;
    let lost = guards.iter().filter(|guard| !guard.lease().is_held()).count();
    assert_eq!(lost, 0, "of {LEASES}");
    let released = guards.into_iter().map(LockGuard::release).collect::<JoinSet<_>>();
    released.join_all().await.into_iter().for_each(Result::unwrap);
    assert_eq!(server.admin().keys("disLock:*"), [""; 0]);
}

async fn hold(locker: &Locker) -> Vec<LockGuard> {
    let locks = (0..LEASES).map(|number| locker.lock(format!("leases:{number}")).renew());
    let acquired: JoinSet<_> = locks.map(|request: LockRequest| request.acquire()).collect();
    acquired.join_all().await.into_iter().map(Result::unwrap).collect()
}

const LEASES: usize = 300;

/// They are renewed after a third of it: the rest is for a machine that stalls.
const LEASE: Duration = Duration::from_secs(15);
