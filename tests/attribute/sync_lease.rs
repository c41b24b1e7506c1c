//! The lease of a body that blocks its thread, which the background renews: the clock is real.

use std::mem::replace;
use std::thread;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};
use rstest::rstest;

use crate::support::{Caller, LIMIT, locker_now, patient, pause};

/// It is renewed after a third of it; on a busy machine that may be late by two thirds of it.
const LEASE: Duration = Duration::from_secs(9);

/// Blocks its thread until the lease was renewed.
fn block_until_renewed(lock: &Lease) {
    let mut before = lock.remaining();
    wait::until(LIMIT, || {
        let now = lock.remaining();
        now > replace(&mut before, now)
    });
}

#[distributed_lock(key = "k", locker = locks)]
fn acquires(locks: &Locker) -> Result<(), LockError> {
    Ok(())
}

/// Asked by another thread, which is another caller.
fn is_taken(locks: &Locker) -> bool {
    let outcome = thread::scope(|scope| scope.spawn(|| acquires(locks)).join().unwrap());
    let Err(error) = outcome else { return false };
    assert!(error.is_busy(), "{error}");
    true
}

#[distributed_lock(key = "k", expire = LEASE, renew, locker = locks, guard = lock)]
fn renewed(locks: &Locker) -> Result<Lease, LockError> {
    block_until_renewed(&lock);
    assert!(is_taken(locks));
    Ok(lock)
}

fn assert_renewed(locks: &Locker) {
    let lease = renewed(locks).unwrap();
    assert!(!lease.is_held() && !lease.is_lost());
    acquires(locks).unwrap();
}

#[rstest]
fn a_sync_body_is_renewed_while_it_blocks(
    #[values(Caller::NoRuntime, Caller::OneThread, Caller::Worker)] caller: Caller,
) {
    caller.run(|| assert_renewed(&locker_now()));
}

#[rstest]
fn a_sync_body_is_renewed_on_a_server(
    #[values(Caller::NoRuntime, Caller::OneThread, Caller::Worker)] caller: Caller,
) {
    let server = Server::start();
    let locks = patient(&server);
    caller.run(move || assert_renewed(&locks));
}

#[tokio::test]
async fn a_body_that_blocks_its_runtime_is_renewed() {
    #[distributed_lock(key = "k", expire = LEASE, renew, locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Result<(), LockError> {
        pause().await;
        block_until_renewed(&lock);
        assert!(is_taken(locks));
        Ok(())
    }
    let server = Server::start();
    call(&patient(&server)).await.unwrap();
}

/// Goal: no answer is no renewal. Method: the server's process is stopped while the body runs.
#[test]
fn a_renewed_body_whose_server_stops_is_lost() {
    #[distributed_lock(key = "k", expire = 4, renew, locker = locks, guard = lock)]
    fn call(locks: &Locker, server: &Server) -> Result<(), LockError> {
        server.pause();
        wait::until(LIMIT, || lock.is_lost());
        server.resume();
        Ok(())
    }
    let server = Server::start();
    let locks = patient(&server);
    let error = call(&locks, &server).unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
    acquires(&locks).unwrap();
}

/// Nothing can stop the body, so it continues without renewal until its last lease ends.
#[test]
fn renewal_ends_at_the_maximum_hold() {
    #[distributed_lock(key = "k", expire = 4, renew, max_hold = 2, locker = locks, guard = lock)]
    fn call(locks: &Locker) -> Result<u8, LockError> {
        wait::until(LIMIT, || !lock.is_held());
        assert!(!lock.is_lost() && is_taken(locks));
        wait::until(LIMIT, || lock.is_lost());
        wait::until(LIMIT, || !is_taken(locks));
        Ok(7)
    }
    let error = call(&locker_now()).unwrap_err();
    assert!(error.is_lost() && error.is_body_finished(), "{error}");
}
