//! What hand-offs cost after the server's clock was set back.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Proxy, Server, clock};
use tokio::task::JoinSet;

use super::support::connect;
use crate::support::LIMIT;

/// How many locks are handed off while the commands are counted.
const HAND_OFFS: usize = 200;

/// Two of each locker, so that a release queues the next one of its own.
const TASKS: usize = 4;

/// Goal: a grant that comes by message counts as it did, and is not claimed by one more script each time.
/// Method: two lockers hand off a lock to each other, before and after the clock was set back by a minute.
#[tokio::test]
async fn a_clock_set_back_makes_hand_offs_no_dearer() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let proxy = Proxy::start(&server);
    let lockers = [connect(&proxy.url()).await, connect(&proxy.url()).await];
    let before = scripts_of_hand_offs(&proxy, &lockers).await;
    server.set_clock_back(Duration::from_secs(60));
    // The first turns find out.
    let first = scripts_of_hand_offs(&proxy, &lockers).await;
    let after = scripts_of_hand_offs(&proxy, &lockers).await;
    println!("{before} scripts before, {first} at first, {after} later, for {HAND_OFFS} hand-offs");
    assert!(2 * after <= 3 * before, "{after} scripts instead of {before}");
}

async fn scripts_of_hand_offs(proxy: &Proxy, lockers: &[Locker; 2]) -> u64 {
    let before = proxy.commands("EVALSHA");
    let mut tasks = JoinSet::new();
    for locker in lockers.iter().cycle().take(TASKS) {
        let locker = locker.clone();
        tasks.spawn(async move {
            for _ in 0..HAND_OFFS / TASKS {
                let guard = locker.lock("k").wait_at_most(LIMIT).fair().acquire().await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    proxy.commands("EVALSHA") - before
}
