//! What a lock costs.

use lockable_runtime::{LockError, Locker, distributed_lock};
use lockable_tests::{Proxy, wait};
use rstest::rstest;

use crate::runtimes::pair;
use crate::support::{
    FENCE, LIMIT, LONG, Runs, acl_line, decorated, server_and_locker, server_and_proxy, set_user,
};
use crate::waiting::support::{
    behind_proxy, connect, held_beside_proxy, in_queue, is_served, listening,
};

#[rstest]
#[tokio::test]
async fn a_pair_costs_two_round_trips(#[values(1, 100)] count: u64) {
    let (_server, proxy, locker) = behind_proxy().await;
    let cost = cost(&proxy, async {
        for _ in 0..count {
            pair(&locker).await;
        }
    });
    assert_eq!(cost.await, first_pairs(count));
    assert_eq!(proxy.accepted(), 1);
}

/// What the first renewal would open, and send, comes only when it is due.
#[tokio::test]
async fn every_kind_of_call_costs_two_round_trips() {
    let (_server, proxy, locker) = behind_proxy().await;
    let cost = cost(&proxy, async {
        for _ in 0..50 {
            decorated(&locker, &Runs::default()).await.unwrap();
            locker.lock("k").run(async {}).await.unwrap();
            renewed(&locker).await.unwrap();
            assert_eq!(locker.lock("k").renew().run(async { 7 }).await.unwrap(), 7);
            locker.lock("k").renew().acquire().await.unwrap().release().await.unwrap();
        }
    });
    assert_eq!(cost.await, first_pairs(250));
    assert_eq!(proxy.accepted(), 1);
}

#[distributed_lock(key = "k", expire = 60, renew, max_hold = "5m", locker = locker.clone())]
async fn renewed(locker: &Locker) -> Result<(), LockError> {
    Ok(())
}

#[tokio::test]
async fn a_busy_lock_costs_one_round_trip() {
    let (_server, proxy, locker, guard) = held_beside_proxy().await;
    // The first request of a connection makes the fence counter, too.
    assert!(locker.lock("k").try_acquire().await.unwrap_err().is_busy());
    let is_busy = async { assert!(locker.lock("k").try_acquire().await.unwrap_err().is_busy()) };
    assert_eq!(cost(&proxy, is_busy).await, [1, 1, 1, 0, 0]);
    guard.release().await.unwrap();
}

/// It may have missed grants, so it is seeded; see the fencing tests.
#[tokio::test]
async fn an_old_fence_counter_costs_no_more_than_none() {
    let (server, proxy, locker) = behind_proxy().await;
    pair(&connect(&server.url()).await).await;
    assert_eq!(cost(&proxy, pair(&locker)).await, first_pairs(1));
    assert_eq!(cost(&proxy, pair(&locker)).await, pairs(1));
}

/// A fence counter that is known to exist is not seeded again, until it is found missing.
#[tokio::test]
async fn a_deleted_fence_counter_costs_one_round_trip_once() {
    let (server, proxy, locker) = behind_proxy().await;
    let newest = pair(&locker).await;
    server.admin().del(FENCE);
    let higher = async { assert!(pair(&locker).await > newest) };
    // A script, and a look at the lock behind it.
    let [round_trips, sets, increments, scripts, others] = pairs(1);
    let reseeding = [round_trips + 1, sets, increments, scripts + 1, others + 1];
    assert_eq!(cost(&proxy, higher).await, reseeding);
    assert!(server.admin().pttl(FENCE) > 0, "it ends some time");
    assert_eq!(cost(&proxy, pair(&locker)).await, pairs(1));
}

#[tokio::test]
async fn forgotten_scripts_cost_one_more_round_trip() {
    let (server, proxy, locker) = behind_proxy().await;
    server.admin().command::<()>(&["SCRIPT", "FLUSH"]);
    assert_eq!(cost(&proxy, pair(&locker)).await[0], 3);
    assert_eq!(cost(&proxy, pair(&locker)).await[0], 2);
}

/// The first pair of each seeds its fence counter, in the same round trip.
#[tokio::test]
async fn a_permit_costs_two_round_trips_and_a_second_key_one() {
    let (_server, proxy, locker) = behind_proxy().await;
    for _ in 0..3 {
        let permit = async {
            let permit = locker.lock("k").permits(3).acquire().await.unwrap();
            permit.release().await.unwrap();
        };
        assert_eq!(cost(&proxy, permit).await[0], 2);
        let two = async {
            let set = locker.lock_all(["a", "b"]).try_acquire().await.unwrap();
            set.release().await.unwrap();
        };
        // Both are released at the same time.
        let [round_trips, ..] = cost(&proxy, two).await;
        assert!((3..=4).contains(&round_trips), "{round_trips}");
    }
}

/// The try, a place in the queue, the query that the wake-up causes, and the release.
#[tokio::test]
async fn a_lock_that_is_handed_off_costs_four_round_trips() {
    let (server, proxy) = server_and_proxy();
    let (holder, locker) =
        (listening(&server, &server.url()).await, listening(&server, &proxy.url()).await);
    let guard = holder.lock("k").acquire().await.unwrap();
    let turn = async {
        let waiter = in_queue(&server, &locker).await;
        guard.release().await.unwrap();
        is_served(waiter).await;
    };
    assert_eq!(cost(&proxy, turn).await, [4, 1, 1, 3, 0]);
}

/// The last one counts the fence counter.
#[tokio::test]
async fn a_redeemed_ticket_costs_two_round_trips() {
    let (_server, proxy, locker) = behind_proxy().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let ticket = guard.into_ticket(LONG).await.unwrap();
    let redeem = async { locker.redeem(ticket).acquire().await.unwrap() };
    let before = proxy.round_trips();
    let guard = redeem.await;
    assert_eq!(proxy.round_trips() - before, 2);
    guard.release().await.unwrap();
}

/// The first one of the process to a server, one to a server that knows the scripts, and one with all that a URL may say;
/// and each time the one that renews.
#[tokio::test]
async fn a_new_connection_sends_few_commands_and_few_scripts() {
    let (server, proxy) = server_and_proxy();
    set_user([&server], acl_line(), "app", &[]);
    let full = format!("redis://app:secret@{}/1", proxy.addr());
    for url in [&proxy.url(), &proxy.url(), &full] {
        let number = proxy.accepted();
        let locker = connect(url).await;
        let [commands, scripts] = sent(&proxy, number);
        assert!(commands <= 15 && scripts <= 8, "{commands} and {scripts}");
        // A guard that is dropped is released by the background thread.
        drop(locker.lock("k").acquire().await.unwrap());
        wait::until_async(LIMIT, async || locker.inspect("k").await.unwrap().is_none()).await;
        assert_eq!(proxy.accepted(), number + 2);
        let [commands, scripts] = sent(&proxy, number + 1);
        assert!(commands <= 15 && scripts <= 8 + 1, "{commands} and {scripts}");
    }
}

/// The server has those whose texts it got.
#[tokio::test]
async fn a_new_connection_sends_the_texts_of_seven_scripts() {
    let (server, _locker) = server_and_locker().await;
    let memory = server.admin().info("memory");
    let scripts = memory.lines().find_map(|line| line.strip_prefix("number_of_cached_scripts:"));
    assert_eq!(scripts, Some("7"));
}

/// How many commands a connection has sent that are no scripts, and how many that are.
fn sent(proxy: &Proxy, number: usize) -> [u64; 2] {
    proxy.connection(number, |traffic| {
        let is_script = |name: &str| name.starts_with("EVAL");
        let (scripts, commands): (Vec<_>, Vec<_>) =
            traffic.commands().iter().partition(|(name, _)| is_script(name));
        [commands, scripts].map(|all| all.into_iter().map(|(_, count)| count).sum())
    })
}

/// Round trips, and how many commands are `SET`, `INCR`, `EVALSHA`, and others.
type Counts = [u64; 5];

/// What passes while the future runs.
async fn cost<T>(proxy: &Proxy, future: impl Future<Output = T>) -> Counts {
    let before = counts(proxy);
    future.await;
    let after = counts(proxy);
    std::array::from_fn(|n| after[n] - before[n])
}

fn counts(proxy: &Proxy) -> Counts {
    let all = (0..proxy.accepted())
        .map(|number| proxy.connection(number, |traffic| traffic.commands().values().sum::<u64>()));
    let [sets, increments, scripts] = ["SET", "INCR", "EVALSHA"].map(|name| proxy.commands(name));
    let others = all.sum::<u64>() - sets - increments - scripts;
    [proxy.round_trips(), sets, increments, scripts, others]
}

fn pairs(count: u64) -> Counts {
    [2 * count, count, count, count, 0]
}

/// The first of them makes the fence counter, by a script in the place of the increment.
fn first_pairs(count: u64) -> Counts {
    [2 * count, count, count - 1, count + 1, 0]
}
