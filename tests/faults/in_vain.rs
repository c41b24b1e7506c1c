//! No query is asked in vain: what a call learns from the other calls of its locker.

use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{ConnectionTraffic, Server, unless_busy, wait};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinSet, spawn_blocking, yield_now};

use crate::runtimes::one_thread;
use crate::support::{COMMAND, KEY, LIMIT, LONG, elapse, impatient, now, server_and_proxy};
use crate::waiting::support::{
    behind_proxy, connect, held_beside_proxy, in_queue, is_over, is_served_last, queued,
    rechecking, release_last, renewed, server_and_locker, waiter,
};

/// A lease that its server confirmed so recently is not asked for.
const CONFIRMED: Duration = Duration::from_millis(800);

/// As many as come soon after the server's answer, also on a slow machine.
#[tokio::test]
async fn a_thousand_tries_of_a_held_key_ask_nothing() {
    let (server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let (round_trips, admin) = (proxy.round_trips(), server.admin());
    admin.reset_statistics();
    for _ in 0..1_000 {
        assert!(is_busy(&locker).await);
        if guard.lease().remaining() + CONFIRMED < LONG {
            break;
        }
        assert_eq!(proxy.round_trips(), round_trips);
        assert_eq!(admin.command_calls("set") + admin.command_calls("incr"), 0);
    }
    guard.release().await.unwrap();
    assert!(!is_busy(&locker).await);
}

#[tokio::test]
async fn a_lock_deleted_by_hand_is_soon_free_here() {
    let (server, _proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    server.admin().del(KEY);
    wait::until_async(LIMIT, async || !is_busy(&locker).await).await;
    drop(guard);
}

/// Method: the lock is renewed when the answer to its request confirms nothing any more, and then tried. A try that comes
/// long after that, on a slow machine, does not count.
#[tokio::test]
async fn a_renewal_confirms_that_the_lock_is_held() {
    const LEASE: Duration = Duration::from_secs(3);
    let (_server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").expire(LEASE).renew().acquire().await.unwrap();
    let asked = || proxy.connection(0, ConnectionTraffic::round_trips);
    let confirmed = async {
        while !guard.lease().is_lost() {
            renewed(&guard).await;
            let (before, round_trips) = (guard.lease().remaining(), asked());
            let is_busy = is_busy(&locker).await;
            let after = guard.lease().remaining();
            if after + CONFIRMED > LEASE && after <= before {
                return assert!(is_busy && asked() == round_trips);
            }
        }
    };
    wait::ends(confirmed).await;
    guard.release().await.unwrap();
}

/// Its release has begun, so the call asks what became of it.
#[tokio::test]
async fn a_minimum_hold_is_asked_for() {
    let (_server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").min_hold(LONG).acquire().await.unwrap();
    guard.release().await.unwrap();
    let round_trips = proxy.round_trips();
    assert!(is_busy(&locker).await);
    assert_eq!(proxy.round_trips(), round_trips + 1);
}

#[tokio::test]
async fn a_lock_of_another_locker_is_asked_for() {
    let (_server, proxy, locker, guard) = held_beside_proxy().await;
    let sets = proxy.commands("SET");
    for _ in 0..3 {
        assert!(is_busy(&locker).await);
    }
    assert_eq!(proxy.commands("SET"), sets + 3);
    guard.release().await.unwrap();
}

/// Goal: a burst of calls for one lock asks once for the lock, and once for a place in its queue.
#[tokio::test]
async fn a_burst_of_waiting_calls_tries_once() {
    let (server, proxy, locker) = behind_proxy().await;
    // What waiting needs is there from now on.
    let guard = locker.lock("k").acquire().await.unwrap();
    let next = in_queue(&server, &locker).await;
    guard.release().await.unwrap();
    is_served_last(&server, next).await;
    let (sets, scripts) = (proxy.commands("SET"), proxy.commands("EVALSHA"));
    let mut calls = JoinSet::new();
    let (inside, entered) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    for _ in 0..64 {
        let (request, inside, entered) =
            (locker.lock("k"), Arc::clone(&inside), Arc::clone(&entered));
        calls.spawn(async move {
            let guard = request.acquire().await.unwrap();
            entered.add_permits(1);
            drop(inside.acquire().await.unwrap());
            guard.release().await.unwrap();
        });
    }
    queued(&server, 1).await;
    drop(entered.acquire().await.unwrap());
    assert_eq!(proxy.commands("EVALSHA"), scripts + 1);
    inside.add_permits(64);
    calls.join_all().await;
    assert_eq!(proxy.commands("SET"), sets + 1);
    is_over(&server).await;
}

/// The place of a line among the processes is from when its call joined.
#[tokio::test]
async fn a_line_behind_its_own_holder_queues_at_once() {
    let (server, locker) = server_and_locker().await;
    let holder = locker.lock("k").acquire().await.unwrap();
    let first = in_queue(&server, &locker).await;
    let second = in_queue(&server, &connect(&server.url()).await).await;
    holder.release().await.unwrap();
    let first = wait::ends(first).await.unwrap();
    assert!(!second.is_finished());
    first.release().await.unwrap();
    is_served_last(&server, second).await;
}

/// Goal: a call behind its own holder waits for the background's connection as long as a try for its own.
/// Method: connecting takes longer than a command may.
#[tokio::test]
async fn a_line_waits_for_a_slow_connection() {
    let (server, proxy) = server_and_proxy();
    let locker = rechecking(&proxy.url()).command_deadline(COMMAND);
    let locker = locker.connect().await.unwrap();
    let holder = locker.lock("k").acquire().await.unwrap();
    proxy.hold_requests();
    let waits = waiter(&locker);
    wait::until_async(LIMIT, async || proxy.accepted() > 1).await;
    // The line waits for its subscription first.
    elapse(CONFIRMED + COMMAND * 3 / 2).await;
    assert!(!waits.is_finished());
    proxy.release_requests();
    queued(&server, 1).await;
    holder.release().await.unwrap();
    is_served_last(&server, waits).await;
}

/// Method: the request of the first call is held back; the background has another connection.
#[tokio::test]
async fn a_call_behind_a_dropped_try_is_served_at_once() {
    let (server, proxy, locker) = behind_proxy().await;
    proxy.hold_open_requests();
    let asks = waiter(&locker);
    proxy.wait_held(LIMIT).await;
    let waits = waiter(&locker);
    // The second call runs as far as it can.
    yield_now().await;
    assert!(!waits.is_finished());
    asks.abort();
    let guard = wait::ends(waits).await.unwrap();
    let admin = server.admin();
    let (owner, tries) = (admin.get(KEY), admin.command_calls("set"));
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("set") > tries).await;
    assert_eq!(admin.get(KEY), owner);
    release_last(&server, guard).await;
}

/// Method: the thread of the first call blocks in the middle of it.
#[tokio::test]
async fn a_call_behind_a_blocked_runtime_waits_one_deadline() {
    let server = Server::start();
    let locker = rechecking(&server.url()).command_deadline(COMMAND).connect().await.unwrap();
    let (blocked, is_blocked) = oneshot::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let request = locker.lock("k").wait(LONG);
    let blocking = thread::spawn(move || {
        one_thread().block_on(async move {
            let mut call = pin!(request.acquire());
            let mut context = Context::from_waker(Waker::noop());
            assert!(call.as_mut().poll(&mut context).is_pending());
            blocked.send(()).unwrap();
            is_released.recv().unwrap();
            drop(call.await.unwrap().release().await);
        });
    });
    is_blocked.await.unwrap();
    let start = now();
    let guard = wait::ends(waiter(&locker)).await.unwrap();
    assert!(start.elapsed() >= COMMAND);
    release.send(()).unwrap();
    guard.release().await.unwrap();
    spawn_blocking(|| blocking.join().unwrap()).await.unwrap();
    is_over(&server).await;
}

/// A server that gives no answer ends all of them as it ends a single call, and not half a minute later.
#[tokio::test]
async fn calls_behind_a_failed_try_end_soon_after_it() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    server.pause();
    let calls = (0..10).map(|_| tokio::spawn(locker.lock("k").acquire()));
    let calls: Vec<_> = calls.collect();
    wait::ends(async {
        for call in calls {
            assert!(call.await.unwrap().unwrap_err().is_unavailable());
        }
    })
    .await;
    server.resume();
    let free = async || locker.lock("k").try_acquire().await.is_ok();
    wait::until_async(LIMIT, free).await;
}

/// It could only wait for the others.
#[tokio::test]
async fn a_wait_limit_of_zero_asks_nothing_behind_others() {
    let (server, proxy, locker) = behind_proxy().await;
    let is_refused = async || {
        let call = locker.lock("k").wait(Duration::ZERO).acquire();
        call.await.unwrap_err().is_wait_limit_reached()
    };
    proxy.hold_requests();
    let asks = waiter(&locker);
    proxy.wait_held(LIMIT).await;
    let round_trips = proxy.round_trips();
    assert!(is_refused().await, "behind one that asks");
    proxy.release_requests();
    let guard = asks.await.unwrap();
    assert!(is_refused().await, "behind the holder");
    assert_eq!(proxy.round_trips(), round_trips);
    release_last(&server, guard).await;
}

async fn is_busy(locker: &Locker) -> bool {
    unless_busy(locker.lock("k").try_acquire().await).is_none()
}
