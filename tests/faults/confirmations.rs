//! `replicas`: what a lock waits for until it counts, and what follows where replicas do not confirm it.

mod cluster;
mod refusals;

use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker, LockerBuilder};
use lockable_tests::sections::is_clean;
use lockable_tests::{Answer, Cue, Proxy, Server, StubNodes, wait};
use tokio::task::JoinSet;

use crate::support::{KEY, LIMIT, LONG, connect_ample, patient};
use crate::waiting::support::{call, queued, waiter};

/// Replicas are waited for during a third of it.
const DEADLINE: Duration = Duration::from_secs(9);

/// Goal: no call has a lock that its replica has not, and none leaves it behind.
/// Method: the replica is stopped, and resumed.
#[tokio::test]
async fn a_lock_without_its_replica_is_not_acquired() {
    let pair = Pair::start();
    let locker = pair.connect().await;
    hold(&locker, "k").await;
    pair.replica.pause();
    for _ in 0..2 {
        let error = locker.lock("k").acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
        assert!(error.to_string().contains("0 of 1 replicas have it"), "{error}");
        freed(&pair.primary).await;
    }
    pair.replica.resume();
    hold(&locker, "k").await;
    is_clean(&pair.primary).await;
}

/// The server has one of the two replicas that the URL needs; the number of the builder precedes that.
#[tokio::test]
async fn fewer_replicas_than_are_needed_confirm_no_lock() {
    let pair = Pair::start();
    let url = format!("{}?replicas=2", pair.primary.url());
    hold(&confirmed(&url).connect().await.unwrap(), "k").await;
    let builder = patient(&url).command_deadline(DEADLINE).connect_deadline(LONG);
    let locker = builder.connect().await.unwrap();
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(
        error.is_unavailable() && error.to_string().contains("of 2 replicas have it"),
        "{error}"
    );
    freed(&pair.primary).await;
    is_clean(&pair.primary).await;
}

/// Goal: a confirmation that writes nothing, so that a server may count the replicas that have an earlier write.
#[tokio::test]
async fn a_confirmation_waits_for_a_write_of_its_own() {
    let pair = Pair::start();
    let locker = pair.connect().await;
    hold(&locker, "k").await;
    let admin = pair.primary.admin();
    admin.reset_statistics();
    let guard = locker.lock("k").acquire().await.unwrap();
    // Acquiring alone needs none.
    assert!(admin.command_calls("pexpire") > 0);
    guard.release().await.unwrap();
}

/// Goal: a connection that hangs while it waits for replicas lets no lock be acquired any more.
#[tokio::test]
async fn a_silent_confirmation_costs_its_connection_alone() {
    let pair = Pair::start();
    let stub_nodes = StubNodes::before(&pair.primary);
    let builder = confirmed(&stub_nodes.url_of(0)).command_deadline(Duration::from_secs(1));
    let locker = builder.connect().await.unwrap();
    let is_held = async || locker.lock("k").acquire().await.is_ok();
    wait::until_async(LIMIT, is_held).await;
    stub_nodes.answer(0, Cue::of(["WAIT"]).times(1), Answer::Silence);
    assert!(!is_held().await);
    // Until the connection is given up, after two deadlines, each try is in vain.
    wait::until_async(LIMIT, is_held).await;
}

#[tokio::test]
async fn a_locker_without_replicas_waits_for_none() {
    let pair = Pair::start();
    let locker = connect_ample(&pair.primary.url()).await;
    pair.replica.pause();
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    guard.lease().extend(2 * LONG).await.unwrap();
    guard.release().await.unwrap();
    assert_eq!(pair.waits(), 0);
    pair.replica.resume();
}

/// Goal: the holder relies on no renewal that its replica does not have, and its lock is there when it stops.
#[tokio::test]
async fn a_lease_ends_where_no_replica_confirms_renewals() {
    const LEASE: Duration = Duration::from_secs(6);
    let pair = Pair::start();
    let locker = pair.connect().await;
    let request = || locker.lock("k").expire(LEASE).renew();
    request().acquire().await.unwrap().release().await.unwrap();
    let guard = request().acquire().await.unwrap();
    pair.replica.pause();
    let error = guard.lease().extend(LONG).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let error = wait::ends(guard.lease().lost()).await;
    assert!(error.is_lost(), "{error}");
    assert!(pair.primary.admin().pttl(KEY) > 0, "the body stops before another one can start");
    pair.replica.resume();
    drop(guard);
    is_clean(&pair.primary).await;
}

/// Goal: a lock that is handed off counts as one that is acquired does.
/// Method: it is handed off while the replica is stopped.
#[tokio::test]
async fn a_lock_that_is_handed_off_waits_for_its_replica() {
    let pair = Pair::start();
    let holder = connect_ample(&pair.primary.url()).await;
    let locker = pair.connect().await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let waiter = waiter(&locker);
    queued(&pair.primary, 1).await;
    pair.replica.pause();
    let (waits, before) = (pair.waits(), pair.primary.admin().get(KEY));
    guard.release().await.unwrap();
    wait::until_async(LIMIT, async || pair.waits() > waits).await;
    assert_ne!(pair.primary.admin().get(KEY), before);
    assert!(!waiter.is_finished(), "no replica has it");
    pair.replica.resume();
    waiter.await.unwrap().release().await.unwrap();
    is_clean(&pair.primary).await;
}

/// The same of a lock that a release hands off to the next call of its own process.
#[tokio::test]
async fn a_lock_that_comes_back_to_its_process_waits_for_its_replica() {
    let pair = Pair::start();
    let holder = connect_ample(&pair.primary.url()).await;
    let locker = pair.connect().await;
    let guard = holder.lock("k").acquire().await.unwrap();
    let fair = || tokio::spawn(locker.lock("k").wait(LONG).fair().acquire());
    let (first, second) = (fair(), fair());
    queued(&pair.primary, 1).await;
    guard.release().await.unwrap();
    // They are in the order in which they came.
    let first = first.await.unwrap().unwrap();
    pair.replica.pause();
    let waits = pair.waits();
    first.release().await.unwrap();
    wait::until_async(LIMIT, async || pair.waits() > waits).await;
    assert!(!second.is_finished(), "no replica has it");
    pair.replica.resume();
    second.await.unwrap().unwrap().release().await.unwrap();
    is_clean(&pair.primary).await;
}

/// After a failover no one could redeem it.
#[tokio::test]
async fn a_ticket_without_its_replica_is_not_made() {
    let pair = Pair::start();
    let locker = pair.connect().await;
    let guard = locker.lock("k").acquire().await.unwrap();
    pair.replica.pause();
    let failed = guard.into_ticket(LONG).await.unwrap_err();
    assert!(failed.error().is_unavailable(), "{failed}");
    drop(failed);
    freed(&pair.primary).await;
    pair.replica.resume();
    is_clean(&pair.primary).await;
}

#[tokio::test]
async fn a_redemption_without_its_replica_starts_no_body() {
    let pair = Pair::start();
    let locker = pair.connect().await;
    let ticket = locker.lock("k").acquire().await.unwrap().into_ticket(LONG).await.unwrap();
    pair.replica.pause();
    let body = async { panic!("its lock may be lost") };
    let ran: Result<(), LockError> = locker.redeem(ticket).run(body).await;
    let error = ran.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    freed(&pair.primary).await;
    pair.replica.resume();
    is_clean(&pair.primary).await;
}

/// Goal: the limit of a call counts while replicas are waited for, and the lock goes to the next one after that.
#[tokio::test]
async fn a_wait_limit_includes_the_replicas() {
    let pair = Pair::start();
    let holder = connect_ample(&pair.primary.url()).await;
    let locker = pair.connect().await;
    pair.replica.pause();
    let limit = Duration::from_secs(9);
    let guard = holder.lock("k").acquire().await.unwrap();
    let waiting = tokio::spawn(locker.lock("k").wait(limit).acquire());
    queued(&pair.primary, 1).await;
    guard.release().await.unwrap();
    let error = wait::ends(waiting).await.unwrap().unwrap_err();
    let reason = "0 of 1 replicas have it; the wait limit of 9s";
    assert!(error.is_unavailable() && error.to_string().contains(reason), "{error}");
    freed(&pair.primary).await;
    pair.replica.resume();
    is_clean(&pair.primary).await;
}

/// Goal: a call that gets the lock from another one of its process waits for no replica.
#[tokio::test]
async fn a_pass_within_a_process_is_not_confirmed() {
    let pair = Pair::start();
    let holder = connect_ample(&pair.primary.url()).await;
    let locker = pair.connect().await;
    // A turn that has lasted for long is not passed on.
    wait::until_async(LIMIT, async || {
        let guard = holder.lock("k").acquire().await.unwrap();
        let calls = [call(&locker), call(&locker)];
        queued(&pair.primary, 1).await;
        let waits = pair.waits();
        guard.release().await.unwrap();
        for call in calls {
            call.await.unwrap().unwrap().release().await.unwrap();
        }
        pair.waits() == waits + 1
    })
    .await;
    is_clean(&pair.primary).await;
}

#[tokio::test]
async fn locks_of_the_same_moment_share_a_wait() {
    const LOCKS: usize = 128;
    let pair = Pair::start();
    let locker = pair.connect().await;
    hold(&locker, "k").await;
    let waits = pair.waits();
    let mut calls = JoinSet::new();
    for number in 0..LOCKS {
        let request = locker.lock(format!("k:{number}"));
        calls.spawn(async move { request.acquire().await.unwrap() });
    }
    let guards = calls.join_all().await;
    let waits = pair.waits() - waits;
    assert!(waits > 0 && waits < LOCKS as u64 / 2, "{waits}");
    for guard in guards {
        guard.release().await.unwrap();
    }
    is_clean(&pair.primary).await;
}

/// Goal: it counts that the server of the moment has the lock, and not that another one had it.
/// Method: the name of the server leads to the next one for the connections that confirm alone, to which the lock was
/// never copied.
#[tokio::test]
async fn a_lock_that_another_server_has_is_not_confirmed() {
    let (pair, other) = (Pair::start(), Pair::start());
    let proxy = Proxy::start(&pair.primary);
    let locker = confirmed(&proxy.url()).connect_lazy().unwrap();
    // Opens the connection for locks alone, because there is no lock to confirm.
    assert!(locker.inspect("k").await.unwrap().is_none());
    proxy.redirect(&other.primary);
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains("was gone"), "{error}");
    is_clean(&other.primary).await;
}

/// Goal: where a new connection for locks leads to another server, the one that confirms follows.
/// Method: the name of the server leads to the next one, and the former ends the connections but for the one that confirms.
#[tokio::test]
async fn confirmations_follow_the_locks_to_another_server() {
    let (pair, other) = (Pair::start(), Pair::start());
    let proxy = Proxy::start(&pair.primary);
    let locker = confirmed(&proxy.url()).connect().await.unwrap();
    hold(&locker, "k").await;
    proxy.redirect(&other.primary);
    let admin = pair.primary.admin();
    let clients: String = admin.command(&["CLIENT", "LIST"]);
    let is_other =
        |client: &&str| client.contains("name=lockable:") && !client.contains("cmd=wait");
    for client in clients.lines().filter(is_other) {
        let (id, _) = client.trim_start_matches("id=").split_once(' ').unwrap();
        admin.command::<u64>(&["CLIENT", "KILL", "ID", id]);
    }
    hold(&locker, "k").await;
    assert!(other.waits() > 0);
    is_clean(&other.primary).await;
}

/// A primary and its replica.
struct Pair {
    primary: Server,
    replica: Server,
}

impl Pair {
    fn start() -> Self {
        let builder = Server::builder().config("repl-diskless-sync", "no").config("hz", "100");
        let pair = Self { primary: builder.clone().start(), replica: builder.start() };
        pair.replica.admin().follow(pair.primary.addr());
        pair.primary.admin().wait_for_replica();
        pair.primary.admin().reset_statistics();
        pair
    }

    async fn connect(&self) -> Locker {
        confirmed(&self.primary.url()).connect().await.unwrap()
    }

    /// How often replicas were waited for.
    fn waits(&self) -> u64 {
        self.primary.admin().command_calls("wait")
    }
}

fn confirmed(url: &str) -> LockerBuilder {
    patient(url).command_deadline(DEADLINE).connect_deadline(LONG).replicas(1)
}

async fn hold(locker: &Locker, name: &str) {
    let guard: LockGuard = locker.lock(name).acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// Waits until no one has `k`.
async fn freed(server: &Server) {
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.get(KEY).is_none()).await;
}
