//! A failover behind one address: new connections lead to the new primary, and those that are open stay at the
//! old one, which is its replica by now.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use lockable_runtime::__internals::{Place, Verbs};
use lockable_runtime::{LockGuard, Locker};
use lockable_tests::sections::Sections;
use lockable_tests::{Proxy, Server, clock, wait};
use rstest::rstest;
use tokio::task::JoinSet;

use super::support::{
    connect, connect_rechecking, in_queue, kill_subscribers, queued, release_last, released,
    subscribers,
};
use crate::support::{KEY, LIMIT, LONG, elapse};

/// Goal: a waiter that a hand-off passes over hears of no grant.
/// Method: waiters of three processes have subscribed at the old primary. The new one sends there what it publishes,
/// but counts no one.
#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_server_passes_on_no_grant() {
    let (old, new, proxy, guard, lockers) = held().await;
    let (sections, mut waiters) = (Arc::new(Sections::default()), JoinSet::new());
    for (number, locker) in lockers.iter().enumerate() {
        let (request, sections) = (locker.lock("k").wait(LONG), Arc::clone(&sections));
        waiters.spawn(async move {
            let guard = request.acquire().await.unwrap();
            sections.enter(&guard);
            // So long that a second holder at the same time is seen.
            elapse(Duration::from_millis(100)).await;
            sections.leave(&guard);
            released(&guard.release().await);
        });
        queued(&old, number + 1).await;
    }
    proxy.fail_over(&old, &new);
    guard.release().await.unwrap();
    waiters.join_all().await;
    sections.assert_sound();
}

/// Goal: waiters are not left with their own questions alone.
/// Method: as above, until they have subscribed at the new primary; then the lock is handed off twelve times.
#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_follow_to_the_new_primary() {
    let (old, new, proxy, guard, lockers) = held().await;
    let mut waiters = JoinSet::new();
    for locker in lockers {
        waiters.spawn(async move {
            for _ in 0..4 {
                let guard = locker.lock("k").wait(LONG).fair().acquire().await.unwrap();
                released(&guard.release().await);
            }
        });
    }
    queued(&old, WAITERS).await;
    proxy.fail_over(&old, &new);
    let channels = ["PUBSUB", "CHANNELS", "lockable:grant:*"];
    let admin = new.admin();
    wait::until_async(LIMIT, async || admin.command::<Vec<String>>(&channels).len() == WAITERS)
        .await;
    guard.release().await.unwrap();
    wait::ends(waiters.join_all()).await;
}

/// Goal: a grant of the new primary, whose clock is another one, does not count from an answer of the old primary.
/// Method: a grant of either comes by message. As the clocks are the same here, nothing else than what was opened since
/// keeps the second one from having a date.
#[rstest]
#[tokio::test]
async fn a_grant_of_the_new_primary_is_not_dated_by_the_old_one(
    #[values(Opened::Subscription, Opened::Connection, Opened::Nothing)] opened: Opened,
) {
    let (old, new, proxy) = pair();
    let open = || Verbs::open_impatient(&proxy.url(), LONG).unwrap();
    let (mut waiter, holder) = (open(), open());
    let (grants, heard) = channel();
    waiter.listen(grants).await.unwrap();
    for (server, is_dated) in [(&old, true), (&new, false)] {
        let held = holder.attempt(KEY, LONG, None).unwrap();
        holder.acquire(&held).await.unwrap().expect("the lock is free");
        let waiting = waiter.attempt(KEY, LONG, None).unwrap();
        assert!(matches!(waiter.enqueue(&waiting).await.unwrap(), Place::Queued(_)));
        if !is_dated {
            match opened {
                Opened::Subscription => subscribe_again(&proxy, &old, &new).await,
                Opened::Connection => {
                    disconnect(&mut waiter, &proxy, &old, &new).await;
                    waiter.inspect(KEY).await.unwrap();
                }
                Opened::Nothing => disconnect(&mut waiter, &proxy, &old, &new).await,
            }
        }
        holder.release(&held, None, Duration::ZERO).await.unwrap();
        let (owner, _, _, has_date) = heard.recv_timeout(LIMIT).unwrap();
        assert_eq!((owner.as_str(), has_date), (waiting.owner(), is_dated));
        waiter.release(&waiting, None, Duration::ZERO).await.unwrap();
        assert_eq!(server.admin().get(KEY), None);
    }
}

/// Goal: the clock of a server that is promoted makes a lease longer or shorter, and tokens rise all the same.
/// Method: it is ahead by more than the lease, which is over there, or behind by as much.
#[rstest]
#[case::ahead(Server::set_clock_forward, true)]
#[case::behind(Server::set_clock_back, false)]
#[tokio::test]
async fn tokens_rise_at_a_new_primary_with_another_clock(
    #[case] set_clock: fn(&Server, Duration),
    #[case] is_over: bool,
) {
    if !clock::can_be_set() {
        return;
    }
    let (old, new) = (Server::start(), Server::builder().clock().start());
    set_clock(&new, 2 * LONG);
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    let (locker, other) = (connect(&proxy.url()).await, connect_rechecking(&proxy.url()).await);
    let guard = locker.lock("k").acquire().await.unwrap();
    let waiter = in_queue(&old, &other).await;
    proxy.fail_over(&old, &new);
    if is_over {
        // The next call leads to the new primary, where the lease is checked.
        locker.lock("first").run(async {}).await.unwrap();
        assert!(wait::ends(guard.lease().lost()).await.is_lost());
    } else {
        assert!(new.admin().pttl(KEY) > 60_000 && !waiter.is_finished());
        guard.lease().extend(LONG).await.unwrap();
    }
    let token = guard.lease().fencing_token();
    drop(guard);
    let next = wait::ends(waiter).await.unwrap();
    assert!(next.lease().fencing_token() > token);
    release_last(&new, next).await;
}

/// What the waiter's locker opens at the new primary as the last.
#[derive(Clone, Copy, Debug)]
enum Opened {
    Subscription,
    Connection,
    /// The connection to the old primary broke, and no call has opened the next one yet.
    Nothing,
}

async fn subscribe_again(proxy: &Proxy, old: &Server, new: &Server) {
    proxy.fail_over(old, new);
    kill_subscribers(&old.admin());
    is_subscribed(new).await;
}

/// The old primary answers once more when the subscription is a new one already.
async fn disconnect(waiter: &mut Verbs, proxy: &Proxy, old: &Server, new: &Server) {
    old.admin().wait_for_replica();
    proxy.redirect(new);
    new.admin().promote();
    kill_subscribers(&old.admin());
    is_subscribed(new).await;
    let other = waiter.attempt("disLock:other", LONG, None).unwrap();
    assert!(matches!(waiter.enqueue(&other).await.unwrap(), Place::Granted(..)));
    old.admin().follow(new.addr());
    old.admin().command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
}

async fn is_subscribed(server: &Server) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || subscribers(&admin) > 0).await;
}

/// A primary and its replica behind one address. The lock `k` is held by one process, and may be waited for by
/// others.
async fn held() -> (Server, Server, Proxy, LockGuard, Vec<Locker>) {
    let (old, new, proxy) = pair();
    let guard = connect(&proxy.url()).await.lock("k").acquire().await.unwrap();
    let mut lockers = Vec::new();
    for _ in 0..WAITERS {
        lockers.push(connect_rechecking(&proxy.url()).await);
    }
    (old, new, proxy, guard, lockers)
}

fn pair() -> (Server, Server, Proxy) {
    let (old, new) = (Server::start(), Server::start());
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    (old, new, proxy)
}

const WAITERS: usize = 3;
