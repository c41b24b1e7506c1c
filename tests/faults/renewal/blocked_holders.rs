//! Holders whose own runtime cannot renew.

use std::mem;
use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Admin, Server, wait};

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, LIMIT, ample, server_and_locker};

/// The first renewal opens a connection, for which a busy machine has two thirds of this.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_body_may_block_its_runtimes_only_thread() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    let body = async { block_until_renewed(&admin, KEY) };
    locker.lock("k").expire(LEASE).renew().run(body).await.unwrap();
    assert_eq!(admin.get(KEY), None);
}

#[tokio::test]
async fn a_guard_may_outlive_the_runtime_that_acquired_it() {
    let (server, locker) = server_and_locker().await;
    let acquire = locker.lock("k").expire(LEASE).renew().acquire();
    let guard = thread::spawn(|| two_threads().block_on(acquire).unwrap()).join().unwrap();
    block_until_renewed(&server.admin(), KEY);
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[test]
fn a_guard_may_be_held_where_no_runtime_is() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let guard = block_on(locker.lock("k").expire(LEASE).renew().acquire()).unwrap();
    block_until_renewed(&server.admin(), KEY);
    assert!(guard.lease().is_held());
    block_on(guard.release()).unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[distributed_lock(key = "sync:{key}", expire = LEASE, renew, locker = locker.clone())]
fn sync_body(locker: &Locker, server: &Server, key: &str) -> Result<(), LockError> {
    block_until_renewed(&server.admin(), &format!("disLock:sync:{key}"));
    Ok(())
}

/// Also where the thread is a runtime's only one.
#[test]
fn a_sync_body_is_renewed() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sync_body(&locker, &server, "plain").unwrap());
        let on_runtime = async { sync_body(&locker, &server, "runtime").unwrap() };
        scope.spawn(|| one_thread().block_on(on_runtime));
    });
}

/// Blocks the thread until what remains of the lease grows in the server.
fn block_until_renewed(admin: &Admin, key: &str) {
    let mut last = admin.pttl(key);
    wait::until(LIMIT, || {
        let now = admin.pttl(key);
        assert!(now > 0, "the lock is gone");
        mem::replace(&mut last, now) < now
    });
}
