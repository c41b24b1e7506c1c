//! Leases count from the sending of the request that granted them, or made them longer.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use tokio::task::yield_now;

use crate::support::{KEY, LIMIT, LONG, elapse, freed, usable};
use crate::waiting::support::{
    behind_proxy, connect, connect_rechecking, in_queue, queued, renewed, waiter,
};

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

/// The request follows a wake-up.
#[tokio::test]
async fn a_grant_of_a_turn_that_is_kept() {
    let (server, proxy, locker) = parts().await;
    let holder = connect(&server.url()).await;
    // The first who waits opens the connections that waiting takes.
    for way in [Duration::ZERO, WAY] {
        let guard = holder.lock("k").acquire().await.unwrap();
        proxy.delay(way);
        let waiter = in_queue(&server, &locker).await;
        guard.release().await.unwrap();
        let guard = wait::ends(waiter).await.unwrap();
        counts_from_its_sending(&guard, LONG, way);
        guard.release().await.unwrap();
    }
}

/// The release of the call before grants it; and what is passed within the process counts from there, too.
#[tokio::test]
async fn a_grant_that_comes_with_a_release() {
    let (server, proxy, locker) = parts().await;
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let first = in_queue(&server, &locker).await;
    let fair = tokio::spawn(locker.lock("k").wait(LONG).fair().acquire());
    yield_now().await;
    holder.release().await.unwrap();
    let first = wait::ends(first).await.unwrap();
    proxy.delay(WAY);
    first.release().await.unwrap();
    counts_from_its_sending(&wait::ends(fair).await.unwrap().unwrap(), LONG, WAY);
}

#[tokio::test]
async fn a_turn_that_is_passed_on() {
    let (server, proxy, locker) = parts().await;
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let first = in_queue(&server, &locker).await;
    let second = waiter(&locker);
    yield_now().await;
    proxy.delay(WAY);
    holder.release().await.unwrap();
    wait::ends(first).await.unwrap().release().await.unwrap();
    counts_from_its_sending(&wait::ends(second).await.unwrap(), LONG, WAY);
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

/// The same of a call that waits, which goes on to do so.
/// Method: the answer to its query is held back until the lease that it grants is over, and another process has the
/// lock.
#[tokio::test]
async fn a_turn_received_after_its_end_is_lost() {
    let (server, proxy, _locker) = parts().await;
    let (holder, locker) =
        (connect_rechecking(&server.url()).await, connect_rechecking(&proxy.url()).await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let call = tokio::spawn(locker.lock("k").expire(LEASE).wait(LONG).acquire());
    queued(&server, 1).await;
    proxy.hold_open_replies();
    guard.release().await.unwrap();
    // More than the second for which the lock is kept; a machine that stands still misses that.
    let admin = server.admin();
    let is_granted = || !(0..=1_000).contains(&admin.pttl(KEY));
    wait::until_async(LIMIT, async || is_granted()).await;
    let guard = wait::ends(holder.lock("k").acquire()).await.unwrap();
    proxy.release_replies();
    queued(&server, 1).await;
    assert!(guard.lease().is_held() && !call.is_finished());
    let token = guard.lease().fencing_token();
    guard.release().await.unwrap();
    let turn = wait::ends(call).await.unwrap().unwrap();
    assert!(turn.lease().fencing_token() > token);
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
