//! What a call says at its wait limit: busy only where that is known.

use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Server, wait};
use tokio::task::spawn_blocking;
use tracing::Level;

use super::support::{
    QUEUE, ample, behind_proxy, call, connect, connect_rechecking, held, held_beside_proxy,
    impatient_behind_proxy, in_queue, is_over, process, queued, rechecking, release_last,
    server_and,
};
use crate::cancellation::late_requests::overtake;
use crate::events;
use crate::runtimes::one_thread;
use crate::support::{COMMAND, KEY, LIMIT, LONG, Runs, elapse, freed, impatient, server_and_proxy};

/// Shorter than a command deadline, which the first try has all the same.
const SHORT: Duration = Duration::from_millis(300);

/// What happens to a call that is queued happens before this.
const LONGER: Duration = Duration::from_secs(3);

/// Calls that wait for a short while, by what they give back. Those whose type has no place for an error have
/// a key that a test can follow through the events.
mod calls {
    use super::{Duration, LockError, Locker, Runs, distributed_lock};

    #[distributed_lock(key = "{key}", locker = locker.clone(), wait = limit)]
    pub(super) async fn unit(locker: &Locker, key: &str, limit: Duration, runs: &Runs) {
        runs.add();
    }

    #[distributed_lock(key = "{key}", locker = locker.clone(), wait = limit, blocking)]
    pub(super) fn option(locker: &Locker, key: &str, limit: Duration, runs: &Runs) -> Option<()> {
        runs.add();
        Some(())
    }

    #[distributed_lock(
        key = "k",
        locker = locker.clone(),
        wait = limit,
        on_busy = "busy",
        on_error = |_| "error"
    )]
    pub(super) async fn answer(locker: &Locker, limit: Duration, runs: &Runs) -> &'static str {
        runs.add();
        "ran"
    }

    #[distributed_lock(key = "k", locker = locker.clone(), wait = limit, on_busy = skip)]
    pub(super) async fn skips(
        locker: &Locker,
        limit: Duration,
        runs: &Runs,
    ) -> Result<(), LockError> {
        runs.add();
        Ok(())
    }

    #[distributed_lock(key = "k", locker = locker.clone(), wait = limit, blocking)]
    pub(super) fn sync(locker: &Locker, limit: Duration, runs: &Runs) -> Result<(), LockError> {
        runs.add();
        Ok(())
    }
}

/// What all of them give at once: the answer of one, and the results of those that have an error. Those
/// that have neither lock `silent`.
async fn all(
    locker: &Locker,
    silent: &'static str,
    limit: Duration,
) -> (&'static str, [Result<(), LockError>; 2]) {
    let runs = Runs::default();
    let (in_sync, sync_runs) = (locker.clone(), runs.clone());
    let option = spawn_blocking(move || calls::option(&in_sync, silent, limit, &sync_runs));
    let (in_sync, sync_runs) = (locker.clone(), runs.clone());
    let sync = spawn_blocking(move || calls::sync(&in_sync, limit, &sync_runs));
    let ((), option, answer, skips, sync) = tokio::join!(
        calls::unit(locker, silent, limit, &runs),
        option,
        calls::answer(locker, limit, &runs),
        calls::skips(locker, limit, &runs),
        sync,
    );
    assert_eq!((option.unwrap(), runs.count()), (None, 0), "a body ran without its lock");
    (answer, [skips, sync.unwrap()])
}

/// No call reported the lock as busy.
fn assert_unavailable((answer, results): (&'static str, [Result<(), LockError>; 2])) {
    assert_eq!(answer, "error");
    for error in results.map(Result::unwrap_err) {
        assert!(error.is_unavailable() && !error.is_wait_limit_reached(), "{error}");
        assert_eq!(error.key(), Some(KEY));
    }
}

/// The two calls without a place for an error have logged it each time, and nothing else.
fn assert_error_events(silent: &str, times: usize) {
    let logged = events::about(&format!("disLock:{silent}"));
    let of = |level| logged.iter().filter(|event| event.level == level).count();
    let counts = [of(Level::ERROR), of(Level::WARN), of(Level::INFO)];
    assert_eq!(counts, [2 * times, 0, 0], "{logged:#?}");
}

/// Goal: a call that waits behind another process's hold does not count on an answer whose server is gone.
/// Method: it is queued, and both of its connections break before its limit, which comes before its recheck.
#[tokio::test]
async fn a_lock_is_not_busy_once_the_connections_broke() {
    let (server, locker, _guard) = held().await;
    let runs = Runs::default();
    let (by, counted) = (locker.clone(), runs.clone());
    let answer = tokio::spawn(async move { calls::answer(&by, LONGER, &counted).await });
    queued(&server, 1).await;
    // Behind the other one it sends no request, so that no answer to it comes late.
    let call = tokio::spawn(locker.lock("k").wait(LONGER).acquire());
    queued(&server, 1).await;
    server.kill();
    let (answer, error) = (answer.await.unwrap(), call.await.unwrap().unwrap_err());
    assert!(error.is_unavailable() && answer == "error", "{answer} {error}");
    assert_eq!(runs.count(), 0);
}

/// The same where only the connection breaks over which the queue was asked, and the subscription stays.
#[tokio::test]
async fn a_lock_is_not_busy_once_the_connection_for_commands_broke() {
    let (server, locker, _guard) = held().await;
    let call = tokio::spawn(locker.lock("k").wait(LONGER).acquire());
    queued(&server, 1).await;
    server.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

/// A pair of calls in sequence have the command deadline each, so all of them together have two.
#[tokio::test]
async fn a_stalled_server_is_not_reported_as_busy() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    events::listen();
    server.pause();
    let all = all(&locker, "limit-hangs", SHORT);
    assert_unavailable(wait::ends(all).await);
    assert_error_events("limit-hangs", 1);
    server.resume();
}

#[tokio::test]
async fn a_dead_server_is_not_reported_as_busy() {
    let (_server, proxy, locker) = impatient_behind_proxy().await;
    events::listen();
    proxy.refuse();
    proxy.cut();
    // A limit of zero is busy behind the first of them, which still asks.
    for limit in [Duration::from_nanos(1), SHORT, 3 * COMMAND] {
        let all = all(&locker, "limit-gone", limit);
        assert_unavailable(wait::ends(all).await);
    }
    assert_error_events("limit-gone", 3);
}

#[tokio::test]
async fn a_waiter_learns_that_its_server_died() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let limit = 4 * COMMAND;
    let waiting = locker.lock("k").wait(limit);
    let waiting = tokio::spawn(async move { waiting.acquire().await.map(drop) });
    let skipping = tokio::spawn(async move { all(&locker, "k", limit).await });
    queued(&server, 1).await;
    server.kill();
    let error = wait::ends(waiting).await.unwrap().unwrap_err();
    assert!(error.is_unavailable() && !error.is_wait_limit_reached(), "{error}");
    let text = error.to_string();
    assert!(text.contains(&server.url()) && text.contains("wait limit"), "{text}");
    assert_unavailable(skipping.await.unwrap());
    drop(holder);
}

#[tokio::test]
async fn a_busy_lock_is_busy_after_any_wait() {
    let (server, locker, holder) = held().await;
    for limit in [Duration::ZERO, Duration::from_nanos(1), SHORT, 3 * COMMAND] {
        let (answer, [skips, sync]) = all(&locker, "k", limit).await;
        assert!(answer == "busy" && skips.is_ok());
        assert!(sync.unwrap_err().is_wait_limit_reached());
    }
    release_last(&server, holder).await;
}

/// Goal: where the holder is of the same locker, no answer of the server is needed.
/// Method: one call waits, the server stalls, and another one lines up behind it.
#[tokio::test]
async fn a_local_holder_means_busy_without_an_answer() {
    let server = Server::start();
    let locker = ample(&server.url()).command_deadline(COMMAND).connect().await.unwrap();
    let holder = locker.lock("k").acquire().await.unwrap();
    let first = in_queue(&server, &locker).await;
    // The line has its answer before this.
    overtake(&locker).await;
    server.pause();
    // Longer than the command deadline, so that the line has heard of no answer by then.
    let error = locker.lock("k").wait(3 * COMMAND).acquire().await.unwrap_err();
    server.resume();
    assert!(error.is_wait_limit_reached(), "{error}");
    holder.release().await.unwrap();
    first.await.unwrap().release().await.unwrap();
    is_over(&server).await;
}

/// Goal: a turn whose lease has ended is no holder.
/// Method: its guard stays in hand, the server dies, and another call waits for longer than the lease.
#[tokio::test]
async fn a_lease_that_is_over_makes_no_lock_busy() {
    let server = Server::start();
    let locker = impatient(&server.url()).connect().await.unwrap();
    let holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let short = locker.lock("k").expire(5 * COMMAND);
    let first = tokio::spawn(short.wait(LONG).acquire());
    queued(&server, 1).await;
    holder.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    let second = tokio::spawn(locker.lock("k").wait(6 * COMMAND).acquire());
    queued(&server, 1).await;
    server.kill();
    let error = second.await.unwrap().unwrap_err();
    assert!(!first.lease().is_held() && error.is_unavailable(), "{error}");
}

/// Method: the query of a line has no answer, while a call of another runtime, over a connection of
/// its own, is answered.
#[tokio::test]
async fn a_current_answer_outweighs_an_earlier_failure() {
    let (server, proxy, locker) = impatient_behind_proxy().await;
    let _holder = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let waiting = call(&locker);
    queued(&server, 1).await;
    proxy.hold_open_requests();
    proxy.wait_held(LIMIT).await;
    // The next one follows when that one has failed.
    proxy.wait_for_command("EVALSHA", proxy.commands("EVALSHA") + 1, LIMIT).await;
    let call =
        move || one_thread().block_on(locker.lock("k").wait(Duration::ZERO).acquire()).unwrap_err();
    let error = spawn_blocking(call).await.unwrap();
    assert!(error.is_wait_limit_reached(), "{error}");
    waiting.abort();
}

/// Method: each time the turn that is kept for the call passes while the link is stalled, and another holder has the
/// lock after that.
#[tokio::test]
async fn a_busy_lock_is_found_over_a_stalling_link() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_rechecking(&proxy.url()).await;
    let other = connect_rechecking(&server.url()).await;
    let mut guard = other.lock("k").acquire().await.unwrap();
    let call = tokio::spawn(locker.lock("k").wait(3 * LONGER).acquire());
    for _ in 0..2 {
        queued(&server, 1).await;
        proxy.hold_requests();
        proxy.hold_replies();
        guard.release().await.unwrap();
        guard = other.lock("k").wait(LONG).acquire().await.unwrap();
        proxy.release_requests();
        proxy.release_replies();
    }
    queued(&server, 1).await;
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_wait_limit_reached(), "{error}");
    release_last(&server, guard).await;
}

/// Goal: a call without a limit that misses its turns because its process is stopped does not end.
#[tokio::test]
async fn a_repeatedly_stopped_process_keeps_waiting() {
    let (server, locker) = server_and(rechecking).await;
    let mut guard = locker.lock("k").acquire().await.unwrap();
    let mut worker = process(&server.url());
    worker.say("wait 300000");
    for _ in 0..6 {
        queued(&server, 1).await;
        worker.pause();
        guard.release().await.unwrap();
        guard = locker.lock("k").wait(LONG).acquire().await.unwrap();
        worker.resume();
    }
    queued(&server, 1).await;
    guard.release().await.unwrap();
    assert_eq!(worker.hear(), "held");
}

/// Goal: a call that may not wait gets a free lock over a link of any length, and leaves nothing behind.
#[tokio::test]
async fn a_call_without_wait_gets_a_free_lock() {
    let (server, proxy, locker) = behind_proxy().await;
    proxy.delay(Duration::from_millis(1));
    let runs = Runs::default();
    for limit in [Duration::ZERO, Duration::from_micros(1), Duration::from_micros(900)] {
        for _ in 0..20 {
            locker.lock("k").wait(limit).acquire().await.unwrap().release().await.unwrap();
            calls::skips(&locker, limit, &runs).await.unwrap();
        }
    }
    assert_eq!(runs.count(), 60);
    assert_eq!(server.admin().command::<usize>(&["EXISTS", KEY, QUEUE]), 0);
}

/// Goal: a call without a limit does not take turns for ever that it cannot use.
/// Method: a lease is shorter than the way to the server and back.
#[tokio::test]
async fn a_lease_shorter_than_the_link_is_an_error() {
    let (server, proxy, _locker, guard) = held_beside_proxy().await;
    let locker = connect_rechecking(&proxy.url()).await;
    let short = Duration::from_millis(40);
    proxy.delay(short);
    let call = tokio::spawn(locker.lock("k").expire(short).acquire());
    queued(&server, 1).await;
    guard.release().await.unwrap();
    let error = wait::ends(call).await.unwrap().unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("longer `expire`"), "{error}");
    // Nothing takes the lock for a call that has ended.
    elapse(Duration::from_millis(200)).await;
    freed(&server).await;
    is_over(&server).await;
}
