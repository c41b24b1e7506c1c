//! What becomes of a lock at the end of its minimum hold, while others wait for it.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Server, wait};

use super::support::{AT_ONCE, is_over, is_served, queued, waiter, within};
use crate::support::{KEY, LIMIT, connect};

/// Long enough that a waiter is in the queue before it ends.
const MINIMUM: Duration = Duration::from_millis(600);

#[tokio::test]
async fn the_first_who_waits_comes_before_newcomers() {
    let lockers = Lockers::start().await;
    for _ in 0..4 {
        let guard = lockers.hold(MINIMUM).await;
        let waiter = waiter(&lockers.waiter);
        queued(&lockers.server, 1).await;
        guard.release().await.unwrap();
        lockers.no_newcomer_before(waiter).await;
    }
    is_over(&lockers.server).await;
}

#[tokio::test]
async fn one_who_waits_since_the_release_comes_before_newcomers() {
    let lockers = Lockers::start().await;
    for _ in 0..4 {
        lockers.hold(MINIMUM).await.release().await.unwrap();
        let waiter = waiter(&lockers.waiter);
        queued(&lockers.server, 1).await;
        lockers.no_newcomer_before(waiter).await;
    }
    is_over(&lockers.server).await;
}

#[tokio::test]
async fn an_inspection_leaves_out_the_waiters_second() {
    let lockers = Lockers::start().await;
    let guard = lockers.hold(3 * MINIMUM).await;
    let waiter = waiter(&lockers.waiter);
    queued(&lockers.server, 1).await;
    guard.release().await.unwrap();
    let held = lockers.newcomer.inspect("k").await.unwrap().unwrap();
    assert!(held.remaining().unwrap() <= 3 * MINIMUM, "{held:?}");
    assert!(lockers.server.admin().get(KEY).unwrap().starts_with('='));
    is_served("behind a minimum", 3 * MINIMUM + AT_ONCE, waiter).await;
}

#[tokio::test]
async fn a_waiter_who_leaves_makes_it_no_longer() {
    let lockers = Lockers::start().await;
    let guard = lockers.hold(LIMIT).await;
    let waiter = waiter(&lockers.waiter);
    queued(&lockers.server, 1).await;
    guard.release().await.unwrap();
    let admin = lockers.server.admin();
    wait::until_async(LIMIT, async || admin.get(KEY).is_some_and(|it| it.starts_with('='))).await;
    waiter.abort();
    queued(&lockers.server, 0).await;
    assert!(admin.get(KEY).unwrap().starts_with('~'));
    assert!((1..=10_000).contains(&admin.pttl(KEY)), "{}", admin.pttl(KEY));
}

/// Its last second is not taken for the one that a minimum hold leaves to those who wait.
#[tokio::test]
async fn the_value_of_another_program_is_no_mark() {
    let lockers = Lockers::start().await;
    let admin = lockers.server.admin();
    for value in ["=theirs", "=0123456789abcdef.x", "~0123456789abcde.1"] {
        admin.command::<()>(&["SET", KEY, value, "PX", "3000"]);
        let waiter = waiter(&lockers.waiter);
        queued(&lockers.server, 1).await;
        // The line asks again in the last second, and takes nothing then.
        wait::until_async(LIMIT, async || admin.pttl(KEY) < 900).await;
        let asked = admin.command_calls("lpos");
        wait::until_async(LIMIT, async || {
            admin.command_calls("lpos") > asked || admin.pttl(KEY) < 100
        })
        .await;
        assert!(admin.get(KEY).is_none_or(|found| found == value));
        is_served("behind another program", LIMIT, waiter).await;
    }
}

struct Lockers {
    server: Server,
    holder: Locker,
    waiter: Locker,
    newcomer: Locker,
}

impl Lockers {
    async fn start() -> Self {
        let server = Server::start();
        let url = server.url();
        let locker = || connect(&url);
        let (holder, waiter, newcomer) = (locker().await, locker().await, locker().await);
        Self { server, holder, waiter, newcomer }
    }

    async fn hold(&self, least: Duration) -> LockGuard {
        self.holder.lock("k").wait_at_most(LIMIT).min_hold(least).acquire().await.unwrap()
    }

    /// Asks without a pause until the waiter has the lock.
    async fn no_newcomer_before(&self, waiter: tokio::task::JoinHandle<LockGuard>) {
        let newcomers = async {
            while !waiter.is_finished() {
                let overtakes = self.newcomer.lock("k").try_acquire().await.unwrap();
                assert!(overtakes.is_none() || waiter.is_finished(), "a newcomer has the lock");
            }
        };
        within("the waiter", MINIMUM + AT_ONCE, newcomers).await;
        waiter.await.unwrap().release().await.unwrap();
    }
}
