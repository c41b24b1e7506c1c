//! Many acquisitions at once, which are batched, and what their releases have in common with them.

use lockable_runtime::LockErrorKind;
use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Answer, Cue, Server, StubNodes, wait};

use crate::reconnection::cut_behind_its_request;
use crate::releases::{self, Call, MANY, all_are_freed, all_are_released, begun, held, key, name};
use crate::runtimes::{one_thread, pair};
use crate::support::{COMMAND, LIMIT, is_unsure, server_and_proxy};
use crate::waiting::support::{ample, behind_proxy};

#[tokio::test]
async fn many_acquisitions_are_sent_before_any_is_answered() {
    let (server, proxy, locker) = behind_proxy().await;
    let start = proxy.commands("SET");
    proxy.hold_open_replies();
    let calls = begin(&locker);
    proxy.wait_for_command("SET", start + u64::try_from(MANY).unwrap(), LIMIT).await;
    proxy.release_replies();
    all_are_granted(calls).await;
    all_are_freed(&server.admin()).await;
}

/// Goal: a call that was given up before its batch was sent takes no lock afterwards.
/// Method: its runtime stands still until the background has given up waiting for the answers.
#[test]
fn calls_that_were_given_up_are_in_no_batch() {
    let (server, proxy) = server_and_proxy();
    let runtime = one_thread();
    let locker = ample(&proxy.url()).command_deadline(COMMAND).connect_lazy().unwrap();
    runtime.block_on(pair(&locker));
    // The background connects now, so that what it is tried with is no release.
    runtime.block_on(async { drop(locker.lock("k").acquire().await.unwrap()) });
    wait::until(LIMIT, || held(&server.admin()) == 0);
    let (tries, releases) = (proxy.commands("SET"), proxy.commands("EVALSHA"));
    runtime.block_on(async { drop(begin(&locker)) });
    proxy.wait_for_command_blocking("EVALSHA", releases + u64::try_from(MANY).unwrap(), LIMIT);
    runtime.block_on(pair(&locker));
    // The others are the first calls, which went alone: more of them where the machine is slow.
    let sent = usize::try_from(proxy.commands("SET") - tries).unwrap();
    assert!(sent < MANY, "{sent}");
    // A connection that was opened meanwhile has sent scripts that are no releases.
    wait::until(LIMIT, || held(&server.admin()) == 0);
}

#[tokio::test]
async fn each_of_many_acquisitions_returns_its_own_result() {
    let (server, _proxy, locker) = behind_proxy().await;
    let admin = server.admin();
    for n in (0..MANY).step_by(3) {
        admin.set(&name(n), "another's");
        admin.command::<u64>(&["RPUSH", &name(n + 1), "data"]);
    }
    let mut guards = Vec::new();
    for (n, call) in begin(&locker).into_iter().enumerate() {
        match (n % 3, call.await) {
            (0, Err(error)) => assert!(error.is_busy(), "{error}"),
            (1, Err(error)) => assert!(error.kind() == LockErrorKind::WrongType, "{error}"),
            (2, Ok(guard)) => guards.push(guard),
            (_, outcome) => panic!("{n}: {outcome:?}"),
        }
    }
    assert!(guards.len() >= MANY / 3);
}

#[tokio::test]
async fn many_calls_outlive_their_connection() {
    let (server, proxy, locker) = behind_proxy().await;
    proxy.hold_open_replies();
    let calls = begin(&locker);
    cut_behind_its_request(&proxy).await;
    let guards = all_are_granted(calls).await;
    proxy.hold_open_replies();
    let releases = releases::begin(guards);
    cut_behind_its_request(&proxy).await;
    for release in releases {
        release.await.unwrap_or_else(|error| is_unsure(&error));
    }
    assert_eq!(held(&server.admin()), 0);
}

#[test]
fn many_calls_outlive_their_runtime() {
    let (server, proxy) = server_and_proxy();
    let locker = ample(&proxy.url()).connect_lazy().unwrap();
    let [first, second, third] = [one_thread(), one_thread(), one_thread()];
    first.block_on(pair(&locker));
    proxy.hold_open_requests();
    let calls = first.block_on(async { begin(&locker) });
    drop(first);
    proxy.release_requests();
    let guards = second.block_on(all_are_granted(calls));
    assert_eq!(held(&server.admin()), MANY);
    proxy.hold_open_requests();
    let releases = second.block_on(async { releases::begin(guards) });
    drop(second);
    proxy.release_requests();
    third.block_on(all_are_released(releases));
    assert_eq!(held(&server.admin()), 0);
}

#[tokio::test]
async fn many_calls_survive_forgotten_scripts() {
    let (server, _proxy, locker) = behind_proxy().await;
    let forget = || server.admin().command::<()>(&["SCRIPT", "FLUSH"]);
    forget();
    let guards = all_are_granted(begin(&locker)).await;
    let fences = server.admin().keys("lockable:fence:*");
    assert!(fences.iter().all(|fence| server.admin().pttl(fence) > 0));
    forget();
    all_are_released(releases::begin(guards)).await;
    assert_eq!(held(&server.admin()), 0);
}

/// Goal: a server that has lost its scripts when the first of them is called can be used all the same.
/// Method: it never knows one, and so runs only what is sent whole.
#[tokio::test]
async fn a_server_that_forgets_its_scripts_is_connected_to() {
    let server = Server::start();
    let stub_node = StubNodes::before(&server);
    let unknown = Answer::error("NOSCRIPT No matching script. Please use EVAL.");
    stub_node.answer(0, Cue::of(["EVALSHA"]), unknown);
    let locker = ample(&stub_node.url_of(0)).connect().await.unwrap();
    pair(&locker).await;
}

type Acquisition = Call<Result<LockGuard, LockError>>;

/// Asks for all of the locks before any call can be answered.
fn begin(locker: &Locker) -> Vec<Acquisition> {
    (0..MANY).map(|n| begun(locker.lock(key(n)).try_acquire())).collect()
}

async fn all_are_granted(calls: Vec<Acquisition>) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for call in calls {
        guards.push(call.await.unwrap());
    }
    assert_eq!(guards.len(), MANY);
    guards
}
