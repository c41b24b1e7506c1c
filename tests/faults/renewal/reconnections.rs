//! When a connection came back every lease is checked at once, the renewed ones and the others.

use std::time::Duration;

use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Proxy, Server, wait};
use rstest::rstest;

use crate::runtimes::two_threads;
use crate::support::{
    KEY, LIMIT, LONG, connect, connect_ample, server_and_locker, server_and_proxy,
};

const COUNT: usize = 50;

const RENEWED: Duration = Duration::from_secs(6);

#[tokio::test]
async fn the_first_call_reveals_a_restart() {
    let (server, locker) = server_and_locker().await;
    let guards = hold(&locker).await;
    server.restart();
    call(&locker).await;
    all_lost(guards).await;
}

/// A runtime's first connection replaces none, but the server may be another one since the others were opened.
#[rstest]
#[case::which_was_connected(true)]
#[case::which_connects_then(false)]
#[tokio::test]
async fn a_call_of_another_runtime_reveals_a_restart(#[case] was_connected: bool) {
    let (server, locker) = server_and_locker().await;
    let guards = hold(&locker).await;
    let (other, task) = (two_threads(), locker.clone());
    if was_connected {
        other.spawn(async move { call(&task).await }).await.unwrap();
    }
    server.restart();
    other.spawn(async move { call(&locker).await }).await.unwrap();
    all_lost(guards).await;
    other.shutdown_background();
}

/// Goal: a lock whose later end was lost with a server is held until then all the same.
/// Method: another client makes the end as early as a failover may.
#[tokio::test]
async fn a_check_restores_the_end_of_a_lease() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    let guard = locker.lock("k").acquire().await.unwrap();
    let admin = server.admin();
    let of_lease = admin.pttl(KEY);
    admin.command::<()>(&["PEXPIRE", KEY, "60000"]);
    proxy.cut();
    call(&locker).await;
    wait::until_async(LIMIT, async || admin.pttl(KEY) > 60_000).await;
    assert!(admin.pttl(KEY) <= of_lease, "a check makes no lease longer");
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
}

#[rstest]
#[case::refused_connections(refuse)]
#[case::unanswered_calls(Proxy::hold_open_requests)]
#[tokio::test]
async fn a_restart_after_calls_in_vain_reaches_every_holder(#[case] fault: fn(&Proxy)) {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let guards = hold(&locker).await;
    fault(&proxy);
    for n in 0..3 {
        // The last one may go over the next connection: releases in the background are unanswered, too.
        let outcome = locker.lock(format!("unanswered:{n}")).acquire().await;
        assert!(outcome.is_err_and(|error| error.is_unavailable()) || n == 2);
    }
    server.restart();
    proxy.accept();
    call(&locker).await;
    all_lost(guards).await;
}

fn refuse(proxy: &Proxy) {
    proxy.refuse();
    proxy.cut();
}

/// Goal: unanswered tries to connect do not make a reconnection look like the first connection.
/// Method: the open connections are cut, and new ones are accepted by a stalled server.
#[tokio::test]
async fn a_restart_after_a_silence_reaches_every_holder() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let guards = hold(&locker).await;
    server.pause();
    proxy.cut();
    // A look leaves nothing to the background that would connect, too.
    for _ in 0..2 {
        assert!(locker.inspect("other").await.unwrap_err().is_unavailable());
    }
    server.restart();
    call(&locker).await;
    all_lost(guards).await;
}

/// Goal: two holders in one process, one of which is renewed by a server that the address led to once.
/// Method: the address moves, and of two runtimes' connections only one breaks; the old server keeps running.
#[tokio::test]
async fn leases_on_a_server_that_was_left_are_lost() {
    let (old, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    let guard = locker.lock("k").expire(RENEWED).renew().acquire().await.unwrap();
    let caller = proxy.accepted() - 1;
    // The first renewal opens the background's connection.
    wait::until_async(LIMIT, async || proxy.accepted() > caller + 1).await;
    wait::until_async(LIMIT, async || guard.lease().remaining() > RENEWED * 9 / 10).await;
    let new = Server::start();
    proxy.redirect(&new);
    old.admin().command::<()>(&["CLIENT", "KILL", "ID", &oldest_of_two(&old)]);
    let other = locker.lock("other").try_acquire().await.unwrap();
    let error = wait::ends(guard.lease().lost()).await;
    assert!(error.is_lost(), "{error}");
    let next = locker.lock("k").try_acquire().await.unwrap();
    for guard in [other, next] {
        guard.release().await.unwrap();
    }
}

/// The client that was connected first, but for those that look.
fn oldest_of_two(server: &Server) -> String {
    let clients = server.admin().command::<String>(&["CLIENT", "LIST", "TYPE", "normal"]);
    let id = |line: &str| line.strip_prefix("id=")?.split(' ').next()?.parse::<u64>().ok();
    clients
        .lines()
        .filter(|line| !line.contains("cmd=client"))
        .filter_map(id)
        .min()
        .unwrap()
        .to_string()
}

/// Goal: leases without renewal are checked, too, until there is an answer.
/// Method: the network fails when the call has reconnected and the background has not.
#[tokio::test]
async fn an_unanswered_check_is_repeated() {
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let mut guards = hold(&locker).await;
    // The renewed ones would be checked anyway.
    for guard in (0..COUNT / 2).map(|n| guards.remove(n)).collect::<Vec<_>>() {
        guard.release().await.unwrap();
    }
    server.restart();
    call(&locker).await;
    proxy.hold_requests();
    // Where the background was faster, all are lost already.
    let (accepted, is_lost) =
        (proxy.accepted(), || guards.iter().all(|guard| guard.lease().is_lost()));
    wait::until_async(LIMIT, async || proxy.accepted() >= accepted + 2 || is_lost()).await;
    proxy.release_requests();
    all_lost(guards).await;
}

#[tokio::test]
async fn closed_connections_cost_no_lease() {
    let (server, locker) = server_and_locker().await;
    let guards = hold(&locker).await;
    let admin = server.admin();
    for _ in 0..5 {
        admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
        admin.reset_statistics();
        call(&locker).await;
        // All are checked, and two scripts more are those of a handshake.
        let asked = || admin.command_calls("get");
        wait::until_async(LIMIT, async || asked() >= COUNT as u64).await;
    }
    assert!(guards.iter().all(|guard| guard.lease().is_held()));
    for guard in guards {
        guard.release().await.unwrap();
    }
}

/// Holds locks, every other one of them renewed; no renewal is due for long.
async fn hold(locker: &Locker) -> Vec<LockGuard> {
    let mut guards = Vec::new();
    for n in 0..COUNT {
        let request = locker.lock(format!("held:{n}")).expire(LONG);
        let request = if n % 2 == 0 { request.renew() } else { request };
        guards.push(request.acquire().await.unwrap());
    }
    guards
}

async fn call(locker: &Locker) {
    locker.lock("other").run(async {}).await.unwrap();
}

/// Every holder learns of it, though none of the leases would end before a test that hangs.
async fn all_lost(guards: Vec<LockGuard>) {
    let lost = async {
        for guard in &guards {
            let error = guard.lease().lost().await;
            assert!(error.to_string().contains("it has no holder"), "{error}");
        }
    };
    wait::ends(lost).await;
}
