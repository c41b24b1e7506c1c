//! Hand-offs after the server's clock was set back, and what they cost.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Proxy, Sections, Server, clock};
use tokio::task::JoinSet;

use super::support::connect;
use crate::support::LONG;

/// How many locks are handed off while the commands are counted.
const HAND_OFFS: usize = 200;

/// Two of each locker, so that a release queues the next one of its own.
const TASKS: usize = 4;

/// Goal: locks are handed off, one holder at a time and with rising tokens, while the fence counter is an hour ahead
/// of the clock, and for no more requests than before.
/// Method: two lockers hand off a lock to each other, before and after the clock was set back.
#[tokio::test]
async fn locks_are_handed_off_after_the_clock_was_set_back_by_an_hour() {
    if !clock::can_be_set() {
        return;
    }
    let server = Server::builder().clock().start();
    let proxy = Proxy::start(&server);
    let lockers = [connect(&proxy.url()).await, connect(&proxy.url()).await];
    let sections = Arc::<Sections>::default();
    let before = scripts_of_hand_offs(&proxy, &lockers, &sections).await;
    server.set_clock_back(Duration::from_secs(3600));
    let after = scripts_of_hand_offs(&proxy, &lockers, &sections).await;
    println!("{before} scripts before, {after} after that, for {HAND_OFFS} hand-offs");
    assert!(10 * after <= 11 * before, "{after} scripts instead of {before}");
    sections.assert_sound();
}

async fn scripts_of_hand_offs(
    proxy: &Proxy,
    lockers: &[Locker; 2],
    sections: &Arc<Sections>,
) -> u64 {
    let before = proxy.commands("EVALSHA");
    let mut tasks = JoinSet::new();
    for locker in lockers.iter().cycle().take(TASKS) {
        let (locker, sections) = (locker.clone(), Arc::clone(sections));
        tasks.spawn(async move {
            for _ in 0..HAND_OFFS / TASKS {
                let guard = locker.lock("k").wait(LONG).fair().acquire().await.unwrap();
                sections.enter(&guard);
                sections.leave(&guard);
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    proxy.commands("EVALSHA") - before
}
