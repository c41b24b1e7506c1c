//! Leases count from the sending of the request that granted them, or made them longer.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};

use crate::support::{KEY, LIMIT, LONG, elapse, freed, usable};
use crate::waiting::support::{behind_proxy, renewed};

/// What a request takes to the server, and an answer back.
const WAY: Duration = Duration::from_millis(150);

/// A lease that tests wait for the end of.
const LEASE: Duration = Duration::from_secs(2);

/// Long enough that a renewal is answered in time over that way.
const RENEWED: Duration = Duration::from_secs(6);

#[tokio::test]
async fn an_acquisition() {
    let (_server, proxy, locker) = parts().await;
    proxy.delay(WAY);
    counts_from_its_sending(&locker.lock("k").acquire().await.unwrap(), LONG, WAY);
}

#[tokio::test]
async fn an_extension() {
    let (_server, proxy, locker) = parts().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    proxy.delay(WAY);
    guard.lease().extend(2 * LONG).await.unwrap();
    counts_from_its_sending(&guard, 2 * LONG, WAY);
}

/// The answer to a renewal shows in what remains, which grows with it.
#[tokio::test]
async fn a_renewal() {
    let (server, proxy, locker) = parts().await;
    // The background's connection is opened for this, before the way to it is long.
    drop(locker.lock("k").acquire().await.unwrap());
    freed(&server).await;
    let guard = locker.lock("k").expire(RENEWED).renew().acquire().await.unwrap();
    proxy.delay(WAY);
    renewed(&guard).await;
    counts_from_its_sending(&guard, RENEWED, WAY);
}

/// The request for a place in the queue finds the lock free.
#[tokio::test]
async fn a_grant_to_a_place_in_the_queue() {
    let (server, proxy, locker) = parts().await;
    let admin = server.admin();
    // The first who waits opens the connections that waiting takes.
    for way in [Duration::ZERO, WAY] {
        admin.set(KEY, "another");
        proxy.delay(way);
        let asked = proxy.commands("EVALSHA");
        let waiter = tokio::spawn(locker.lock("k").wait(LONG).acquire());
        proxy.wait_for_command("EVALSHA", asked + 1, LIMIT).await;
        admin.del(KEY);
        let guard = waiter.await.unwrap().unwrap();
        counts_from_its_sending(&guard, LONG, way);
        guard.release().await.unwrap();
    }
}

/// Goal: no lock is left that no caller may use, and no other caller gets, for the rest of its lease.
/// Method: the request is on its way for longer than the lease, which begins at the server then.
#[tokio::test]
async fn a_grant_received_after_its_end_is_released() {
    let (server, proxy, locker) = parts().await;
    proxy.hold_requests();
    let call = tokio::spawn(locker.lock("k").expire(LEASE).acquire());
    proxy.wait_held(LIMIT).await;
    elapse(LEASE).await;
    proxy.release_requests();
    assert!(call.await.unwrap().unwrap_err().is_unavailable());
    // Nothing but a release ends it.
    server.admin().command::<()>(&["PERSIST", KEY]);
    wait::ends(freed(&server)).await;
}

async fn parts() -> (Server, Proxy, Locker) {
    let (server, proxy, locker) = behind_proxy().await;
    locker.lock("other").run(async {}).await.unwrap();
    (server, proxy, locker)
}

fn counts_from_its_sending(guard: &LockGuard, expire: Duration, way: Duration) {
    let most = usable(expire).saturating_sub(2 * way);
    assert!(
        guard.lease().remaining() <= most,
        "{:?} remain of at most {most:?}",
        guard.lease().remaining()
    );
}
