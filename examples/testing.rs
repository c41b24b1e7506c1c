//! How to test a decorated function: that it ships, that it does not when the order is busy or the
//! server is unavailable, and that it stops when its lock is lost.
//!
//! In this folder, run it with `cargo run --example testing`; no server is needed. In a project of yours the
//! functions under `main` belong in `mod tests`, each with `#[tokio::test]`. Watch for the line of each path.

use std::future::{Future, pending, ready};

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, distributed_lock};

/// What the rest of the shop has to know.
#[derive(Debug, PartialEq)]
enum Shipping {
    Done,
    AlreadyUnderWay,
    TryLater,
    LookAtIt,
}

/// The function under test: it names no locker, so it uses the process-wide one.
#[distributed_lock(key = "order:{id}", expire = 10)]
async fn pack_and_send(id: u32, packed: impl Future<Output = ()>) -> Result<(), LockError> {
    packed.await;
    println!("  order {id} is sent");
    Ok(())
}

/// Its caller, which distinguishes the failures.
async fn ship(id: u32, packed: impl Future<Output = ()>) -> Shipping {
    match pack_and_send(id, packed).await {
        Ok(()) => Shipping::Done,
        Err(error) if error.is_busy() => Shipping::AlreadyUnderWay,
        Err(error) if error.is_lost() => Shipping::LookAtIt,
        Err(_) => Shipping::TryLater,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    an_order_is_sent_once().await;
    a_busy_order_is_left_to_its_holder().await;
    nothing_is_sent_while_the_server_is_unavailable().await;
    packing_stops_when_the_lock_is_lost().await;
}

async fn an_order_is_sent_once() {
    // A store of this test's own: tests that run at the same time do not see it.
    let locks = TestLocks::new();
    assert_eq!(locks.scope(ship(7, ready(()))).await, Shipping::Done);
    assert_eq!(locks.counts("order:7").granted, 1);
    assert_eq!(locks.holder("order:7"), None);
    println!("free: the body ran, and the lock was released");
}

async fn a_busy_order_is_left_to_its_holder() {
    let locks = TestLocks::new();
    let other = locks.hold("order:7");
    let packed = async { unreachable!("runs beside another holder") };
    assert_eq!(locks.scope(ship(7, packed)).await, Shipping::AlreadyUnderWay);
    assert_eq!(locks.counts("order:7").busy, 1);
    println!("busy: the body did not run");

    drop(other);
    assert_eq!(locks.scope(ship(7, ready(()))).await, Shipping::Done);
}

async fn nothing_is_sent_while_the_server_is_unavailable() {
    let locks = TestLocks::new();
    locks.fail_next("order:7");
    let packed = async { unreachable!("runs without a lock") };
    assert_eq!(locks.scope(ship(7, packed)).await, Shipping::TryLater);
    assert_eq!(locks.counts("order:7").failed, 1);
    println!("unavailable: the body did not run");
}

async fn packing_stops_when_the_lock_is_lost() {
    let locks = TestLocks::new();
    // `join!` polls in this order: the lock is lost while the body waits for its packing.
    let call = locks.scope(ship(7, pending()));
    let (outcome, ()) = tokio::join!(biased; call, async { locks.lose("order:7") });
    assert_eq!(outcome, Shipping::LookAtIt);
    println!("lost: the body was stopped");
}
