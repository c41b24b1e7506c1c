//! Holders whose own runtime cannot renew.

use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::Server;

use crate::runtimes::{block_on, one_thread, two_threads};
use crate::support::{KEY, ample, elapse, server_and_locker};

const LEASE: Duration = Duration::from_secs(3);

/// As long as a thread is blocked: only a lease that was renewed is there then.
const LONGER: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_body_may_block_its_runtimes_only_thread() {
    let (server, locker) = server_and_locker().await;
    let body = async {
        block_thread();
        server.admin().pttl(KEY)
    };
    let rest = locker.lock("k").expire(LEASE).renew().run(body).await.unwrap();
    assert!(rest > 0, "{rest}");
    assert_eq!(server.admin().get(KEY), None);
}

#[tokio::test]
async fn a_guard_may_outlive_the_runtime_that_acquired_it() {
    let (server, locker) = server_and_locker().await;
    let acquire = locker.lock("k").expire(LEASE).renew().acquire();
    let guard = thread::spawn(|| two_threads().block_on(acquire).unwrap()).join().unwrap();
    elapse(LONGER).await;
    assert!(guard.is_held() && server.admin().pttl(KEY) > 0);
    guard.release().await.unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[test]
fn a_guard_may_be_held_where_no_runtime_is() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    let guard = block_on(locker.lock("k").expire(LEASE).renew().acquire()).unwrap();
    block_thread();
    assert!(guard.is_held());
    block_on(guard.release()).unwrap();
    assert_eq!(server.admin().get(KEY), None);
}

#[distributed_lock(key = "sync:{key}", expire = LEASE, renew, locker = locker.clone())]
fn sync_body(locker: &Locker, key: &str) -> Result<(), LockError> {
    block_thread();
    Ok(())
}

/// Also where the thread is a runtime's only one.
#[test]
fn a_sync_body_is_renewed() {
    let server = Server::start();
    let locker = ample(&server.url()).connect_lazy().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| sync_body(&locker, "plain").unwrap());
        scope.spawn(|| one_thread().block_on(async { sync_body(&locker, "runtime").unwrap() }));
    });
}

#[expect(clippy::disallowed_methods, reason = "a blocked thread is the subject")]
fn block_thread() {
    thread::sleep(LONGER);
}
