//! Requests that reach the server, or whose replies come back, after their caller is gone.

use std::thread;
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::runtimes::{block_on, one_thread};
use crate::support::{KEY, LIMIT, elapse, freed, freed_blocking, impatient, server_and_proxy};
use crate::waiting::support::{ample, behind_proxy};

/// How often a test repeats what depends on who is faster.
const ROUNDS: usize = 3;

/// How a call ends before its answer comes.
#[derive(Clone, Copy, Debug)]
enum End {
    Dropped,
    TimedOut,
}

impl End {
    /// The deadline of a call that is dropped is not reached.
    fn locker(self, proxy: &Proxy) -> Locker {
        let builder = match self {
            Self::Dropped => ample(&proxy.url()),
            Self::TimedOut => impatient(&proxy.url()),
        };
        builder.connect_lazy().unwrap()
    }

    async fn of(self, call: JoinHandle<Result<LockGuard, LockError>>) {
        match self {
            Self::Dropped => {
                call.abort();
                assert!(call.await.unwrap_err().is_cancelled());
            }
            Self::TimedOut => assert!(call.await.unwrap().unwrap_err().is_unavailable()),
        }
    }
}

/// Goal: the release of a call that ended early does not overtake the call's own request.
/// Method: the request is held on its connection while later connections pass freely; a call
/// through the background's connection shows that every deferred release has been tried.
#[rstest]
#[tokio::test]
async fn a_late_request_leaves_no_lock(#[values(End::Dropped, End::TimedOut)] end: End) {
    for _ in 0..ROUNDS {
        let (server, proxy) = server_and_proxy();
        let locker = end.locker(&proxy);
        landed(&locker).await;
        let call = held_request(&locker, &proxy).await;
        end.of(call).await;
        overtake(&locker).await;
        proxy.release_requests();
        landed(&locker).await;
        freed(&server).await;
    }
}

/// Goal: a connection that breaks, or hangs, keeps no lock.
/// Method: the server has run the request and its reply never comes, while later connections work.
#[rstest]
#[case::of_a_dropped_call(End::Dropped, Proxy::cut)]
#[case::of_a_timed_out_call(End::TimedOut, Proxy::hang_up)]
#[case::of_a_hanging_connection(End::TimedOut, |_: &Proxy| ())]
#[tokio::test]
async fn a_missing_reply_leaves_no_lock(#[case] end: End, #[case] breaks: fn(&Proxy)) {
    for _ in 0..ROUNDS {
        let (server, proxy) = server_and_proxy();
        let locker = end.locker(&proxy);
        landed(&locker).await;
        proxy.hold_open_replies();
        let call = acquire(&locker);
        proxy.wait_reply_held(LIMIT).await;
        end.of(call).await;
        assert!(server.admin().get(KEY).is_some());
        breaks(&proxy);
        freed(&server).await;
    }
}

/// Goal: a runtime that is no longer driven keeps no lock. Method: it is not polled after the end of
/// the call, so the reply comes and is not read.
#[test]
fn a_runtime_no_longer_driven_keeps_no_lock() {
    let (server, proxy) = server_and_proxy();
    let locker = End::TimedOut.locker(&proxy);
    let runtime = one_thread();
    runtime.block_on(landed(&locker));
    proxy.hold_open_replies();
    let call = locker.lock("k").acquire();
    assert!(runtime.block_on(call).unwrap_err().is_unavailable());
    assert!(server.admin().get(KEY).is_some());
    proxy.release_replies();
    freed_blocking(&server);
}

/// Goal: a request that outlives its connection is released although its reply never arrives.
/// Method: the client's side is closed while the request is held, and no connection succeeds; so the
/// call ends without an answer. Then the server can be reached, and the request lands.
#[tokio::test]
async fn a_request_that_outlives_its_connection_is_released() {
    let (server, proxy, locker) = behind_proxy().await;
    lose_the_connection(&locker, &proxy).await;
    proxy.accept();
    landed(&locker).await;
    assert_eq!(server.admin().get(KEY), None);
    land(&server, &proxy).await;
    freed(&server).await;
}

/// As above, with a request that lands after its lease: the releases are repeated until one command
/// deadline after that. Method: the lock is made to last, so that nothing but a release ends it.
#[tokio::test]
async fn a_request_after_its_lease_is_released() {
    let (server, proxy) = server_and_proxy();
    let expire = Duration::from_millis(500);
    let locker = ample(&proxy.url()).expire(expire).connect().await.unwrap();
    lose_the_connection(&locker, &proxy).await;
    proxy.accept();
    elapse(2 * expire).await;
    land(&server, &proxy).await;
    server.admin().command::<()>(&["PERSIST", KEY]);
    freed(&server).await;
}

/// The one case in which a lock can remain: the call was repeated on another connection, acquired
/// and released, and then the first request lands. It lasts for `expire` from there.
#[rstest]
#[tokio::test]
async fn a_request_behind_its_retry_lasts_expire_at_most(#[values(false, true)] is_dropped: bool) {
    let (server, proxy) = server_and_proxy();
    let expire = Duration::from_secs(2);
    let locker = ample(&proxy.url()).expire(expire).connect().await.unwrap();
    let call = held_request(&locker, &proxy).await;
    if is_dropped {
        End::Dropped.of(call).await;
        proxy.hang_up();
        overtake(&locker).await;
    } else {
        proxy.hang_up();
        call.await.unwrap().unwrap().release().await.unwrap();
    }
    land(&server, &proxy).await;
    assert!(u128::try_from(server.admin().pttl(KEY)).unwrap_or(0) <= expire.as_millis());
    freed(&server).await;
}

/// A call whose request is held on its connection.
async fn held_request(locker: &Locker, proxy: &Proxy) -> JoinHandle<Result<LockGuard, LockError>> {
    proxy.hold_open_requests();
    let call = acquire(locker);
    proxy.wait_held(LIMIT).await;
    call
}

/// A call that ends without an answer, while its request is held on a connection that is gone.
async fn lose_the_connection(locker: &Locker, proxy: &Proxy) {
    let call = held_request(locker, proxy).await;
    proxy.refuse();
    proxy.hang_up();
    assert!(call.await.unwrap().unwrap_err().is_unavailable());
}

/// Lets the held acquisition go and waits until the server has run it. It is the first of its
/// connection, which reads the time for its fence counter.
async fn land(server: &Server, proxy: &Proxy) {
    let admin = server.admin();
    let before = admin.command_calls("time");
    proxy.release_requests();
    wait::until_async(LIMIT, async || admin.command_calls("time") > before).await;
}

/// A call on this runtime's connection, behind everything that was sent there before.
pub(crate) async fn landed(locker: &Locker) {
    let is_through = async || locker.lock("behind").run(async {}).await.is_ok();
    wait::until_async(LIMIT, is_through).await;
}

/// A call on the background's connection, behind everything that was deferred before.
///
/// On a plain thread, because a blocking task would still be inside this runtime.
pub(crate) async fn overtake(locker: &Locker) {
    let locker = locker.clone();
    let (done, is_done) = oneshot::channel();
    thread::spawn(move || {
        wait::until(LIMIT, || block_on(locker.lock("overtaking").run(async {})).is_ok());
        done.send(()).unwrap();
    });
    is_done.await.unwrap();
}

fn acquire(locker: &Locker) -> JoinHandle<Result<LockGuard, LockError>> {
    tokio::spawn(locker.lock("k").acquire())
}
