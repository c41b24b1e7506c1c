//! Holders whose own runtime cannot renew.

use std::thread;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::Server;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, connect, elapse, patient};

const LEASE: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_body_may_block_its_runtimes_only_thread() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let body = async {
        block_thread(3 * LEASE);
        server.admin().pttl(KEY)
    };
    let rest = locker.lock("k").expire(LEASE).renew().run(body).await.unwrap();
    assert!(rest > 0, "{rest}");
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_guard_may_outlive_the_runtime_that_acquired_it() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let acquire = locker.lock("k").expire(LEASE).renew().acquire();
    let guard = thread::spawn(|| two_threads().block_on(acquire).unwrap()).join().unwrap();
    elapse(3 * LEASE).await;
    assert!(guard.is_held() && server.admin().pttl(KEY) > 0);
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_guard_may_be_held_where_no_runtime_is() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    thread::scope(|scope| {
        let held = scope.spawn(|| {
            let guard = block_on(locker.lock("k").expire(LEASE).renew().acquire()).unwrap();
            block_thread(3 * LEASE);
            assert!(guard.is_held());
            block_on(guard.release()).unwrap();
        });
        held.join().unwrap();
    });
    assert_eq!(server.admin().get(KEY), None);
}

#[lockable_runtime::distributed_lock(key = "k", expire = LEASE, renew, locker = locker.clone())]
fn sync_body(locker: &Locker) -> Result<(), lockable_runtime::LockError> {
    block_thread(3 * LEASE);
    Ok(())
}

#[tokio::test]
async fn a_sync_body_is_renewed() {
    let server = Server::start();
    let locker = patient(&server.url()).connect_lazy().unwrap();
    thread::scope(|scope| scope.spawn(|| sync_body(&locker)).join().unwrap()).unwrap();
    // Also where the thread is a runtime's only one.
    thread::scope(|scope| {
        scope.spawn(|| one_thread().block_on(async { sync_body(&locker) })).join().unwrap()
    })
    .unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a blocked thread is the subject")]
fn block_thread(duration: Duration) {
    thread::sleep(duration);
}
