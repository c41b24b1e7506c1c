//! Many acquisitions at once, which are batched.

use std::pin::Pin;
use std::task::{Context, Waker};

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::wait;

use crate::releases::{MANY, all_are_freed, held, key, name};
use crate::runtimes::one_thread;
use crate::support::{LIMIT, connect, impatient, patient, server_and_proxy};

#[tokio::test]
async fn many_acquisitions_are_sent_before_any_is_answered() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let start = proxy.commands("SET");
    proxy.hold_open_replies();
    let calls = begin(&locker);
    proxy.wait_for_command("SET", start + u64::try_from(MANY).unwrap(), LIMIT).await;
    proxy.release_replies();
    assert_eq!(all_are_granted(calls).await.len(), MANY);
    all_are_freed(&server.admin()).await;
}

/// Goal: a call that was given up before its batch was sent takes no lock afterwards.
/// Method: its runtime stands still until the background has given up waiting for the answers.
#[test]
fn calls_that_were_given_up_are_in_no_batch() {
    let (server, proxy) = server_and_proxy();
    let runtime = one_thread();
    let locker = impatient(&proxy.url()).connect_lazy().unwrap();
    let pair = async || locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    runtime.block_on(pair());
    // The background connects now, so that what it is tried with is no release.
    runtime.block_on(async { drop(locker.lock("k").acquire().await.unwrap()) });
    wait::until(LIMIT, || held(&server.admin()) == 0);
    let (tries, releases) = (proxy.commands("SET"), proxy.commands("EVALSHA"));
    runtime.block_on(async { drop(begin(&locker)) });
    proxy.wait_for_command_blocking("EVALSHA", releases + u64::try_from(MANY).unwrap(), LIMIT);
    runtime.block_on(pair());
    // The rest are the first calls, which went alone.
    let sent = usize::try_from(proxy.commands("SET") - tries).unwrap();
    assert!(sent < MANY / 2, "{sent}");
    assert_eq!(held(&server.admin()), 0);
}

#[tokio::test]
async fn each_of_many_acquisitions_returns_its_own_result() {
    let (server, proxy) = server_and_proxy();
    let (locker, admin) = (connect(&proxy.url()).await, server.admin());
    for n in (0..MANY).step_by(3) {
        admin.set(&name(n), "another's");
        admin.command::<u64>(&["RPUSH", &name(n + 1), "data"]);
    }
    let mut guards = Vec::new();
    for (n, call) in begin(&locker).into_iter().enumerate() {
        match (n % 3, call.await) {
            (0, Ok(None)) => {}
            (1, Err(error)) => assert!(error.is_wrong_type(), "{error}"),
            (2, Ok(Some(guard))) => guards.push(guard),
            (_, outcome) => panic!("{n}: {outcome:?}"),
        }
    }
    assert!(guards.len() >= MANY / 3);
}

#[tokio::test]
async fn many_acquisitions_outlive_their_connection() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    proxy.hold_open_replies();
    let calls = begin(&locker);
    proxy.wait_reply_held(LIMIT).await;
    proxy.cut();
    assert_eq!(all_are_granted(calls).await.len(), MANY);
    all_are_freed(&server.admin()).await;
}

#[test]
fn many_acquisitions_outlive_their_runtime() {
    let (server, proxy) = server_and_proxy();
    let (first, second) = (one_thread(), one_thread());
    let locker = patient(&proxy.url()).connect_lazy().unwrap();
    first.block_on(async { locker.lock("k").acquire().await.unwrap().release().await.unwrap() });
    proxy.hold_open_requests();
    let calls = first.block_on(async { begin(&locker) });
    drop(first);
    proxy.release_requests();
    let guards = second.block_on(all_are_granted(calls));
    assert_eq!((guards.len(), held(&server.admin())), (MANY, MANY));
}

#[tokio::test]
async fn many_acquisitions_survive_forgotten_scripts() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    server.admin().command::<()>(&["SCRIPT", "FLUSH"]);
    let guards = all_are_granted(begin(&locker)).await;
    let fences = server.admin().keys("lockable:fence:*");
    assert!(guards.len() == MANY && fences.iter().all(|fence| server.admin().pttl(fence) > 0));
}

type Call = Pin<Box<dyn Future<Output = Result<Option<LockGuard>, LockError>>>>;

/// Asks for all of the locks before any call can be answered.
fn begin(locker: &Locker) -> Vec<Call> {
    let ask = |n| {
        let request = locker.lock(key(n));
        let mut call: Call = Box::pin(async move { request.try_acquire().await });
        let asked = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(asked.is_pending());
        call
    };
    (0..MANY).map(ask).collect()
}

async fn all_are_granted(calls: Vec<Call>) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for call in calls {
        guards.push(call.await.unwrap().unwrap());
    }
    guards
}
