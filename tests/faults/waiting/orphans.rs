//! A call that has ended takes no lock, and has no place in a queue.

use std::time::Duration;

use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;
use tokio::runtime::Runtime;

use super::support::{QUEUE, connect, in_queue, rechecking};
use crate::runtimes::{block_on, one_thread};
use crate::support::{COMMAND, KEY, LIMIT, LONG, elapse, freed, freed_blocking, server_and_proxy};

/// Goal: a query that was repeated, and lands behind the release of its turn, takes the lock for no
/// call.
/// Method:
/// 1. A waiter repeats its query over the connection of the background, where it is held back.
/// 2. The turn comes with the release of the call before, and is released over the connection of another
///    runtime. The server does that, and its answer is held back.
/// 3. The query lands, and takes the free lock.
/// 4. Its answer is processed before that of the release.
#[test]
fn a_query_behind_its_release_takes_no_lock() {
    let (server, proxy, locker) = behind_proxy(LONG);
    let (first, second) = (one_thread(), one_thread());
    let guard = granted_with_an_open_query(&first, &server, &proxy, &locker, locker.lock("k"));
    second.block_on(pair(&locker));
    proxy.hold_replies();
    let mut release = Box::pin(guard.release());
    second.block_on(async {
        tokio::select! {
            _answer = &mut release => panic!("the answer is held back"),
            () = freed(&server) => {}
        }
    });
    proxy.release_requests();
    wait::until(LIMIT, || server.admin().get(KEY).is_some());
    // The background processes its answer before the next one, while the second runtime is busy.
    proxy.release_replies();
    block_on(pair(&locker));
    second.block_on(release).unwrap();
    freed_blocking(&server);
}

/// Goal: the same for a query whose answer was given up before the release began.
/// Method: the command deadline ends while the query is held back.
#[test]
fn a_dropped_query_behind_its_release_takes_nothing() {
    let (server, proxy, locker) = behind_proxy(COMMAND);
    let (first, second) = (one_thread(), one_thread());
    let guard = granted_with_an_open_query(&first, &server, &proxy, &locker, locker.lock("k"));
    first.block_on(elapse(2 * COMMAND));
    second.block_on(guard.release()).unwrap();
    let admin = server.admin();
    assert_eq!(admin.get(KEY), None);
    let granted = admin.command_calls("set");
    proxy.release_requests();
    wait::until(LIMIT, || admin.command_calls("set") > granted);
    freed_blocking(&server);
    assert_eq!(admin.command::<usize>(&["EXISTS", QUEUE]), 0);
}

/// Goal: the minimum hold lasts, also where a query is open and the release is given up: nothing that
/// knows of no minimum overtakes the release.
/// Method: the release is dropped on its way, or has no answer within its deadline.
#[rstest]
#[case::dropped(LONG)]
#[case::unanswered(COMMAND)]
fn a_minimum_hold_outlasts_an_unfinished_release(#[case] deadline: Duration) {
    let (server, proxy, locker) = behind_proxy(deadline);
    let (first, second) = (one_thread(), one_thread());
    let request = locker.lock("k").min_hold(LONG / 2);
    let guard = granted_with_an_open_query(&first, &server, &proxy, &locker, request);
    proxy.hold_requests();
    let release = guard.release();
    let limit = Duration::from_millis(1_200);
    let given_up = second.block_on(async { tokio::time::timeout(limit, release).await });
    assert!(given_up.is_err() || given_up.is_ok_and(|answer| answer.is_err()));
    proxy.release_requests();
    let admin = server.admin();
    wait::until(LIMIT, || admin.get(KEY).is_some_and(|owner| owner.starts_with(['~', '='])));
    first.block_on(elapse(Duration::from_millis(500)));
    assert!(admin.pttl(KEY) > 10_000, "the lock is taken for half a minute");
}

fn behind_proxy(command_deadline: Duration) -> (Server, Proxy, Locker) {
    let (server, proxy) = server_and_proxy();
    let locker = rechecking(&proxy.url()).command_deadline(command_deadline);
    (server, proxy, locker.connect_lazy().unwrap())
}

/// A lock that was granted by the release of the call before, while the query that its line asked is held back.
fn granted_with_an_open_query(
    runtime: &Runtime,
    server: &Server,
    proxy: &Proxy,
    locker: &Locker,
    request: LockRequest,
) -> LockGuard {
    let (former, waiting) = runtime.block_on(async {
        let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
        let former = in_queue(server, locker).await;
        holder.release().await.unwrap();
        let former = former.await.unwrap();
        proxy.hold_open_requests();
        let asked = proxy.commands("EVALSHA");
        let waiting = tokio::spawn(request.wait(LONG).acquire());
        // A turn that lasts for so long is not passed on.
        proxy.wait_for_command("EVALSHA", asked + 1, LIMIT).await;
        (former, waiting)
    });
    // This runtime opens a connection.
    one_thread().block_on(former.release()).unwrap();
    runtime.block_on(wait::ends(waiting)).unwrap().unwrap()
}

async fn pair(locker: &Locker) {
    locker.lock("another").run(async {}).await.unwrap();
}
