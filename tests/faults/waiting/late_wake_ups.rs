//! A wake-up that arrives late starts no body: the line asks.

use std::time::Duration;

use lockable_tests::{Peer, Server, wait};
use rstest::rstest;

use super::history::History;
use super::support::{
    connect, held, held_beside_proxy, in_queue, is_over, process, queued, release_last,
};
use crate::support::{KEY, LIMIT, elapse, server_and_proxy};

/// Goal: a process that hears of its turn when that is nearly over, or over, and continues at once, does not believe in
/// a lock that another one has.
/// Method: the message is held back for a part of the time for which the lock is kept, or for longer, and another
/// process waits behind it; both print when they believed.
#[rstest]
#[tokio::test]
async fn a_late_message_makes_no_second_holder(
    #[values(0, 500, 950, 990, 1_000, 1_300)] delay: u64,
) {
    let (server, proxy) = server_and_proxy();
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let watchers = watchers(&server, &proxy.url()).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    elapse(Duration::from_millis(delay)).await;
    proxy.release_messages();
    exclude_each_other(&server, watchers).await;
}

/// The same with a stopped process, whose message waits in its socket.
#[rstest]
#[tokio::test]
async fn a_stopped_process_is_no_second_holder(#[values(0, 500, 990, 1_000, 1_300)] pause: u64) {
    let (server, _locker, guard) = held().await;
    let watchers = watchers(&server, &server.url()).await;
    watchers[0].pause();
    guard.release().await.unwrap();
    elapse(Duration::from_millis(pause)).await;
    watchers[0].resume();
    exclude_each_other(&server, watchers).await;
}

/// Two processes that wait for the lock, the first of them over this URL.
async fn watchers(server: &Server, first: &str) -> Vec<Peer> {
    let mut watchers = Vec::new();
    for url in [first, &server.url()] {
        let mut watcher = process(url);
        watcher.say("watch 300000");
        watchers.push(watcher);
        queued(server, watchers.len()).await;
    }
    watchers
}

/// Each of them had the lock, and none when another one believed to have it. They are to release it when one of
/// them has it.
async fn exclude_each_other(server: &Server, mut watchers: Vec<Peer>) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.pttl(KEY) > 2_000).await;
    for watcher in &mut watchers {
        watcher.say("enough");
    }
    let mut history = History::default();
    for watcher in &watchers {
        let said = std::iter::repeat_with(|| watcher.hear());
        history.note(&said.take_while(|line| line != "free").collect::<Vec<_>>());
    }
    assert_eq!(history.checked(), 2);
    is_over(server).await;
}

/// Goal: a holder that hears late of a turn that has passed does not begin with a fencing token that is older than that of
/// the one who had the lock in between, though the lock is its own again.
/// Method: the message is held back, the kept lock ends by hand, another one has the lock, and the first one has it again
/// as by its own asking, whose answer is not there yet.
#[tokio::test]
async fn a_late_wake_up_brings_a_newer_fencing_token() {
    let (server, proxy, locker, guard) = held_beside_proxy().await;
    let (admin, between) = (server.admin(), connect(&server.url()).await);
    let waiter = in_queue(&server, &locker).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    let kept = admin.get(KEY).unwrap();
    admin.del(KEY);
    let between = between.lock("k").try_acquire().await.unwrap();
    let token = between.lease().fencing_token();
    between.release().await.unwrap();
    admin.set(KEY, &kept);
    proxy.release_messages();
    let late = wait::ends(waiter).await.unwrap();
    assert!(late.lease().fencing_token() > token, "{} after {token}", late.lease().fencing_token());
    release_last(&server, late).await;
}
