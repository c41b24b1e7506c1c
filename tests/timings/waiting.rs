//! How soon a waiting call is served.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use tokio::task::{JoinHandle, JoinSet};

use crate::crowds::load::elapse;
use crate::{Figure, block_on, now};

/// From a release to the next holder's return, between two processes.
pub(crate) fn hand_off() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let (one, other) = (connect(&server.url()).await, connect(&server.url()).await);
        let mut returns = Duration::ZERO;
        for _ in 0..200 {
            let (holder, next) = waited_for(&server, &one, &other).await;
            let start = now();
            let (released, next) = tokio::join!(holder.release(), next);
            returns = returns.max(start.elapsed());
            released.expect("it is held");
            let next = next.expect("no panic");
            next.release().await.expect("it is held");
        }
        let row = |name, took, bound| Figure::new(name, took, Duration::from_millis(bound));
        vec![
            row("longest of 200 between processes", returns, 50),
            row("where the message is lost", lost_message(&server, &one).await, 1_200),
        ]
    })
}

/// The line asks by itself.
async fn lost_message(server: &Server, one: &Locker) -> Duration {
    let proxy = Proxy::start(server);
    let other = connect(&proxy.url()).await;
    let (holder, next) = waited_for(server, one, &other).await;
    proxy.hold_messages();
    let start = now();
    holder.release().await.expect("it is held");
    let next = next.await.expect("no panic");
    let took = start.elapsed();
    next.release().await.expect("it is held");
    took
}

/// A holder, and a call of another process that is in the queue.
async fn waited_for(
    server: &Server,
    one: &Locker,
    other: &Locker,
) -> (LockGuard, JoinHandle<LockGuard>) {
    let holder = one.lock("k").acquire().await.expect("it is free");
    let next = other.lock("k").acquire();
    let next = tokio::spawn(async move { next.await.expect("it is handed off") });
    let admin = server.admin();
    let is_queued = || admin.command::<usize>(&["LLEN", "lockable:queue:{disLock:k}"]) == 1;
    wait::until_async(wait::HANG, async || is_queued()).await;
    (holder, next)
}

/// Twelve calls that want one of twelve permits, and two that want all: the mean wait of those, beside the time of
/// forty sections.
pub(crate) fn all_permits() -> Vec<Figure> {
    block_on(async {
        let (server, start) = (Server::start(), now());
        let locker = connect(&server.url()).await;
        let mut calls = JoinSet::new();
        for call in 0..14 {
            let locker = locker.clone();
            calls.spawn(async move {
                let (mut sections, mut waited) = (0, Duration::ZERO);
                while start.elapsed() < Duration::from_secs(2) {
                    let (lock, asked) = (locker.lock("k"), now());
                    if call < 12 {
                        let guard = lock.permits(12).acquire().await.expect("it waits");
                        elapse(Duration::from_millis(2)).await;
                        guard.release().await.expect("it is held");
                    } else {
                        let guard = lock.all_permits(12).acquire().await.expect("it waits");
                        waited += asked.elapsed();
                        elapse(Duration::from_millis(2)).await;
                        guard.release().await.expect("it is held");
                    }
                    sections += 1;
                }
                (sections, waited / sections)
            });
        }
        let calls = calls.join_all().await;
        let took = start.elapsed();
        let sections = calls.iter().map(|(sections, _)| sections).sum::<u32>();
        let longest = calls.iter().map(|(_, waited)| *waited).max().unwrap_or_default();
        vec![Figure::new("a call for all permits", longest, 40 * took / sections)]
    })
}

async fn connect(url: &str) -> Locker {
    Locker::connect(url).await.expect("a server")
}
