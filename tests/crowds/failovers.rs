//! Many failovers in a row, planned ones and ones that lose data: what they leave in a process, and at the servers.

use std::fs;
use std::mem;
use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::is_clean;
use lockable_tests::wait::HANG;
use lockable_tests::{Proxy, Server, wait};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::load::{LONG, elapse};
use crate::{alone, in_use};

/// Goal: no connection, task or byte is left of a primary that was left.
/// Method: two servers behind one address, of which either becomes the primary in turn. Each third failover loses what
/// there was, and breaks the connections; at the others they stay open. The first ones make what is made once.
#[test]
fn failovers_leave_no_connection_task_or_memory() {
    alone(async {
        let (mut primary, mut next) = (Server::start(), Server::start());
        let proxy = Proxy::start(&primary);
        let locker = connect(&proxy.url()).await;
        next.admin().follow(primary.addr());
        let mut start = None;
        for round in 0..WARM_UP + FAILOVERS {
            let held = use_locks(&locker).await;
            let loses = round % 3 == 2;
            if loses {
                next.admin().promote();
                next.admin().flush();
                proxy.redirect(&next);
                proxy.cut();
                primary.admin().follow(next.addr());
            } else {
                proxy.fail_over(&primary, &next);
            }
            mem::swap(&mut primary, &mut next);
            drop(locker.lock("first").run(async {}).await);
            if loses {
                assert!(held.lease().lost().await.is_lost());
            }
            drop(held.release().await);
            if round + 1 == WARM_UP {
                start = Some(Left::in_process(&locker, &proxy).await);
            }
        }
        let (start, end) = (start.unwrap(), Left::in_process(&locker, &proxy).await);
        println!("{start:?} {end:?}");
        assert!(end.is_at_most(&start), "{start:?} {end:?}");
        next.admin().promote();
        is_clean(&primary).await;
    });
}

const WARM_UP: usize = 3;
const FAILOVERS: usize = 12;

/// How many bytes may stay after all failovers. The proxy counts what has passed on each connection, which takes half of
/// that; one connection of the locker takes as much as all of it.
const MEMORY: usize = FAILOVERS * 4 * 1024;

async fn connect(url: &str) -> Locker {
    let builder = Locker::builder().url(url).expire(LONG);
    builder.command_deadline(LONG).connect_deadline(LONG).connect().await.unwrap()
}

/// A lock that is handed off to two calls, one that is renewed, and one that stays held.
async fn use_locks(locker: &Locker) -> LockGuard {
    let mut waiters = JoinSet::new();
    let first = locker.lock("line").wait(LONG).acquire().await.unwrap();
    for _ in 0..2 {
        let request = locker.lock("line").wait(LONG).fair();
        waiters.spawn(async move { request.acquire().await.unwrap().release().await });
    }
    let held = locker.lock("held").renew().acquire().await.unwrap();
    first.release().await.unwrap();
    waiters.join_all().await.into_iter().for_each(Result::unwrap);
    held
}

/// What the failovers so far have left.
#[derive(Debug)]
struct Left {
    connections: usize,
    files: usize,
    threads: usize,
    tasks: usize,
    bytes: usize,
}

impl Left {
    /// Once nothing changes any more.
    async fn in_process(locker: &Locker, proxy: &Proxy) -> Self {
        use_locks(locker).await.release().await.unwrap();
        lockable_runtime::shutdown(HANG).await.unwrap();
        let count = |folder: &str| fs::read_dir(folder).unwrap().count();
        let look = || Self {
            connections: proxy.open(),
            files: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            tasks: Handle::current().metrics().num_alive_tasks(),
            bytes: in_use(),
        };
        let mut before = look();
        wait::until_async(HANG, async || {
            elapse(Duration::from_millis(100)).await;
            let now = look();
            let is_calm = now.is_at_most(&before) && before.is_at_most(&now);
            before = now;
            is_calm
        })
        .await;
        before
    }

    fn is_at_most(&self, other: &Self) -> bool {
        let Self { connections, files, threads, tasks, bytes } = self;
        *connections <= other.connections
            && *files <= other.files
            && *threads <= other.threads
            && *tasks <= other.tasks
            && *bytes <= other.bytes + MEMORY
    }
}
