//! Ten thousand calls that wait for a thousand locks.

use std::sync::Arc;

use lockable_tests::wait::HANG;
use lockable_tests::{Server, wait};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::load::{LONG, connect};
use crate::{alone, hold, in_use};

const KEYS: usize = 1_000;
const WAITERS: usize = 10_000;

#[test]
fn ten_thousand_waiters_are_served_over_one_subscription() {
    alone(async {
        let server = Server::start();
        let admin = server.admin();
        let holder = connect(&server.url()).await;
        let held = hold(&holder, KEYS, |request| request.expire(LONG)).await;
        let locker = connect(&server.url()).await;
        let start = Arc::new(Semaphore::new(0));
        let mut tasks = JoinSet::new();
        for n in 0..WAITERS {
            let (locker, start) = (locker.clone(), Arc::clone(&start));
            tasks.spawn(async move {
                drop(start.acquire().await.unwrap());
                let key = format!("crowd:{}", n % KEYS);
                locker.lock(key).acquire().await.unwrap().release().await.unwrap();
            });
        }
        // The tasks, and with them the callers' futures, are there already.
        tokio::task::yield_now().await;
        let before = in_use();
        start.add_permits(WAITERS);
        let queued = || admin.keys("lockable:queue:*").len() == KEYS;
        wait::until_async(HANG, async || queued()).await;
        settled().await;
        let each = in_use().saturating_sub(before) / WAITERS;
        println!("{each} bytes a waiter");
        assert!(each < 1_792, "{each} bytes a waiter");
        let subscribed = admin.command::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        assert_eq!(subscribed.lines().count(), 1, "{subscribed}");
        drop(held);
        tasks.join_all().await;
        lockable_runtime::shutdown(HANG).await.unwrap();
        let left = in_use().saturating_sub(before);
        println!("{left} bytes left");
        assert!(left < 512 * 1_024, "{left} bytes left");
        assert_eq!(admin.keys("*").iter().filter(|key| !key.contains("fence")).count(), 0);
    });
}

/// Returns once all wait: nothing is allocated any more, at fifty looks in a row.
async fn settled() {
    let (mut last, mut looks) = (0, 0);
    wait::until_async(HANG, async || {
        let now = in_use();
        looks = if now > last { 0 } else { looks + 1 };
        last = now.max(last);
        looks > 50
    })
    .await;
}
