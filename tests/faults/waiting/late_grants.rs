//! A grant that arrives late is not counted from its arrival.

use std::time::Duration;

use lockable_tests::{Pace, Peer, wait};
use rstest::rstest;
use tokio::spawn;

use super::random_kills::History;
use super::support::{AT_ONCE, RECHECK, is_over, queued, waiter};
use crate::support::{KEY, LIMIT, connect, elapse, server_and_proxy};

/// Goal: a process that hears of its grant when that is nearly over, or over, and continues at once,
/// does not believe longer in it than the server does.
/// Method: the message is held back for a part of the short grant, or for longer, and another process
/// waits behind it; both print when they believed.
#[rstest]
#[tokio::test]
async fn a_late_message_makes_no_second_holder(
    #[values(0, 100, 250, 500, 900, 950, 990, 1_000, 1_300)] delay: u64,
) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let owner = server.admin().get(KEY);
    let mut head = watcher(&proxy.url());
    queued(&server, 1).await;
    let mut next = watcher(&server.url());
    queued(&server, 2).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    wait::until_async(LIMIT, async || server.admin().get(KEY) != owner).await;
    elapse(Duration::from_millis(delay)).await;
    proxy.release_messages();
    let (mut history, pace) = (History::default(), Pace::start());
    history.note(&watched(&mut head, &mut next).await);
    let report = history.checked();
    println!("{delay} ms late: {report:?}");
    assert!(report.longest_gap < most(delay) + pace.lag(), "{report:?}");
    assert_eq!(report.holds, 2);
    is_over(&server).await;
}

/// The same with a stopped process, whose message waits in its socket.
#[rstest]
#[tokio::test]
async fn a_stopped_process_is_no_second_holder(
    #[values(0, 250, 500, 900, 990, 1_000, 1_300)] pause: u64,
) {
    let server = lockable_tests::Server::start();
    let locker = connect(&server.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let mut head = watcher(&server.url());
    queued(&server, 1).await;
    let mut next = watcher(&server.url());
    queued(&server, 2).await;
    head.pause();
    guard.release().await.unwrap();
    elapse(Duration::from_millis(pause)).await;
    head.resume();
    let (mut history, pace) = (History::default(), Pace::start());
    history.note(&watched(&mut head, &mut next).await);
    let report = history.checked();
    println!("{pause} ms stopped: {report:?}");
    assert!(report.longest_gap < most(pause) + pace.lag(), "{report:?}");
    assert_eq!(report.holds, 2);
    is_over(&server).await;
}

/// How long the lock may have no holder where the first hears of its grant `late` milliseconds late:
/// a grant that lapses about when it is heard of may be taken by no one.
fn most(late: u64) -> Duration {
    if late < 900 { AT_ONCE } else { RECHECK }
}

/// Goal: a holder begins with most of its lease, however late it heard of the short grant.
/// Method: the message is held back for more than a third of the grant, and less than the whole.
#[tokio::test]
async fn a_late_grant_is_claimed_before_the_holder_begins() {
    let (server, proxy) = server_and_proxy();
    let holder = connect(&server.url()).await;
    let waiting = connect(&proxy.url()).await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let owner = server.admin().get(KEY);
    let waiter = spawn(async move {
        let guard = waiting.lock("k").expire(LIMIT).acquire().await.unwrap();
        (guard.remaining(), guard.release().await)
    });
    queued(&server, 1).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    wait::until_async(LIMIT, async || server.admin().get(KEY) != owner).await;
    elapse(Duration::from_millis(400)).await;
    proxy.release_messages();
    let (remaining, released) = waiter.await.unwrap();
    assert!(remaining > LIMIT / 2, "{remaining:?}");
    released.unwrap();
}

/// Goal: a holder that hears late of a grant that lapsed meanwhile does not begin with its fencing
/// token, which is older than that of the one who had the lock in between, though the lock is its own
/// again.
/// Method: the message is held back, the grant ends by hand, another one has the lock, and the first one
/// has it again as by its own asking, whose answer is not there yet. If it does ask, because that took
/// so long, its request is held back as well.
#[tokio::test]
async fn a_repeated_grant_has_a_newer_fencing_token() {
    let (server, proxy) = server_and_proxy();
    let (holder, waiting) = (connect(&server.url()).await, connect(&proxy.url()).await);
    let (admin, guard) = (server.admin(), holder.lock("k").acquire().await.unwrap());
    let owner = admin.get(KEY);
    let waiter = waiter(&waiting);
    queued(&server, 1).await;
    proxy.hold_messages();
    proxy.hold_requests();
    guard.release().await.unwrap();
    wait::until_async(LIMIT, async || admin.get(KEY) != owner).await;
    let granted = admin.get(KEY).unwrap();
    admin.del(KEY);
    let between = holder.lock("k").try_acquire().await.unwrap().unwrap();
    let token = between.fencing_token();
    between.release().await.unwrap();
    admin.command::<()>(&["SET", KEY, &granted, "PX", "1000"]);
    elapse(Duration::from_millis(400)).await;
    proxy.release_messages();
    proxy.release_requests();
    let late = waiter.await.unwrap();
    assert!(late.fencing_token() > token, "{} after {token}", late.fencing_token());
    late.release().await.unwrap();
    is_over(&server).await;
}

/// What both printed, each of which gets the order to release some time after it began.
async fn watched(head: &mut Peer, next: &mut Peer) -> Vec<String> {
    let mut said = Vec::new();
    elapse(Duration::from_millis(1_600)).await;
    for peer in [&mut *head, &mut *next] {
        peer.say("enough");
    }
    for peer in [head, next] {
        loop {
            let line = peer.hear();
            if line == "over" {
                break;
            }
            said.push(line);
        }
    }
    said
}

fn watcher(url: &str) -> Peer {
    let mut peer = Peer::start(env!("CARGO_BIN_EXE_wait_worker"), [url, "watch", "60000"]);
    assert_eq!(peer.hear(), "ready");
    peer.say("go");
    peer
}
