//! What a lock costs.

use lockable_runtime::{FencingToken, LockError, Locker, distributed_lock};
use lockable_tests::{Admin, Proxy};

use crate::support::{FENCE, Runs, connect, decorated, server_and_proxy};

#[tokio::test]
async fn the_first_pair_after_connecting_costs_two_round_trips() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let start = Counts::of(&proxy);
    pair(&locker).await;
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(1).seeding());
}

#[tokio::test]
async fn a_hundred_pairs_cost_two_hundred_round_trips() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let start = Counts::of(&proxy);
    for _ in 0..100 {
        pair(&locker).await;
    }
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(100).seeding());
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn calls_and_runs_cost_two_round_trips_each() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    pair(&locker).await;
    let start = Counts::of(&proxy);
    decorated(&locker, &Runs::default()).await.unwrap();
    locker.lock("k").run(async {}).await.unwrap();
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(2));
}

/// What the first renewal would open, and send, comes only when it is due.
#[tokio::test]
async fn a_renewed_call_costs_what_another_does() {
    let (_server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let start = Counts::of(&proxy);
    for _ in 0..100 {
        assert_eq!(locker.lock("k").renew().run(async { 7 }).await.unwrap(), 7);
        renewed(&locker).await.unwrap();
        locker.lock("k").renew().acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(300).seeding());
    assert_eq!(proxy.accepted(), 1);
}

#[distributed_lock(key = "k", expire = 60, renew, max_hold = "5m", locker = locker.clone())]
async fn renewed(locker: &Locker) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn a_busy_lock_costs_one_round_trip() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    pair(&locker).await;
    let guard = connect(&server.url()).await.lock("k").acquire().await.unwrap();
    let start = Counts::of(&proxy);
    assert!(locker.lock("k").try_acquire().await.unwrap().is_none());
    let busy = Counts { round_trips: 1, sets: 1, increments: 1, scripts: 0, others: 0 };
    assert_eq!(Counts::of(&proxy).since(start), busy);
    guard.release().await.unwrap();
}

/// It may have missed grants, so it is seeded; see the fencing tests.
#[tokio::test]
async fn an_old_fence_counter_costs_no_more_than_none() {
    let (server, proxy) = server_and_proxy();
    pair(&connect(&server.url()).await).await;
    let locker = connect(&proxy.url()).await;
    let start = Counts::of(&proxy);
    pair(&locker).await;
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(1).seeding());
    let start = Counts::of(&proxy);
    pair(&locker).await;
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(1));
}

/// A fence counter that is known to exist is not seeded again, until it is found missing.
#[tokio::test]
async fn a_deleted_fence_counter_costs_one_round_trip_once() {
    let (server, proxy) = server_and_proxy();
    let (locker, admin) = (connect(&proxy.url()).await, Admin::connect(&server.url()));
    let newest = pair(&locker).await;
    admin.del(FENCE);
    let start = Counts::of(&proxy);
    assert!(pair(&locker).await > newest);
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(1).reseeding());
    assert!(admin.pttl(FENCE) > 0, "it ends some time");
    let start = Counts::of(&proxy);
    pair(&locker).await;
    assert_eq!(Counts::of(&proxy).since(start), Counts::of_pairs(1));
}

#[tokio::test]
async fn forgotten_scripts_cost_one_more_round_trip_each() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    server.admin().command::<()>(&["SCRIPT", "FLUSH"]);
    let start = proxy.round_trips();
    pair(&locker).await;
    assert_eq!(proxy.round_trips() - start, 4);
    pair(&locker).await;
    assert_eq!(proxy.round_trips() - start, 6);
}

async fn pair(locker: &Locker) -> FencingToken {
    let guard = locker.lock("k").acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    token
}

/// What has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    round_trips: u64,
    sets: u64,
    increments: u64,
    scripts: u64,
    others: u64,
}

impl Counts {
    fn of(proxy: &Proxy) -> Self {
        let all = (0..proxy.accepted()).map(|number| {
            proxy.connection(number, |traffic| traffic.commands().values().sum::<u64>())
        });
        let all: u64 = all.sum();
        let count = |name| proxy.commands(name);
        let (sets, increments, scripts) = (count("SET"), count("INCR"), count("EVALSHA"));
        let others = all - sets - increments - scripts;
        Self { round_trips: proxy.round_trips(), sets, increments, scripts, others }
    }

    fn of_pairs(pairs: u64) -> Self {
        let (sets, increments, scripts) = (pairs, pairs, pairs);
        Self { round_trips: 2 * pairs, sets, increments, scripts, others: 0 }
    }

    /// By a script in the place of the increment.
    fn seeding(self) -> Self {
        Self { increments: self.increments - 1, scripts: self.scripts + 1, ..self }
    }

    /// By a script, and a look at the lock behind it.
    fn reseeding(self) -> Self {
        let (round_trips, scripts) = (self.round_trips + 1, self.scripts + 1);
        Self { round_trips, scripts, others: self.others + 1, ..self }
    }

    fn since(self, start: Self) -> Self {
        Self {
            round_trips: self.round_trips - start.round_trips,
            sets: self.sets - start.sets,
            increments: self.increments - start.increments,
            scripts: self.scripts - start.scripts,
            others: self.others - start.others,
        }
    }
}
