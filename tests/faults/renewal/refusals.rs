//! Renewals that the server refuses, or does not answer: which leases that ends, and what their holders learn.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Admin, Server, cluster, wait};
use tokio::task::JoinSet;

use crate::support::{LIMIT, acl_rights, connect, elapse, in_time};

const LEASE: Duration = Duration::from_secs(3);

const MANY: usize = 40;

#[tokio::test]
async fn leases_of_different_slots_are_renewed_one_by_one() {
    let server = cluster::start(&Server::builder(), 1).remove(0);
    let guards = hold_many(&connect(&server.url()).await).await;
    elapse(3 * LEASE).await;
    assert!(guards.iter().all(LockGuard::is_held));
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert!(server.admin().keys("disLock:*").is_empty());
}

/// Goal: a cluster costs each locker one refused command, or those that are under way at the same time,
/// and not one for each renewal or release.
/// Method: the server counts its refusals; releases that are asked for at once are batched elsewhere.
#[tokio::test]
async fn after_one_refusal_no_command_mixes_slots() {
    let server = cluster::start(&Server::builder(), 1).remove(0);
    let admin = server.admin();
    let locker = connect(&server.url()).await;
    let guards = hold_many(&locker).await;
    elapse(LEASE).await;
    let first = refusals(&admin);
    assert!(first > 0);
    elapse(LEASE).await;
    // Also where the connection is another one.
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    elapse(LEASE).await;
    assert!(guards.iter().all(LockGuard::is_held));
    let releases: JoinSet<_> = guards.into_iter().map(LockGuard::release).collect();
    releases.join_all().await.into_iter().for_each(Result::unwrap);
    assert_eq!(refusals(&admin), first);
}

#[tokio::test]
async fn a_clusters_forgotten_scripts_are_sent_one_by_one() {
    let server = cluster::start(&Server::builder(), 1).remove(0);
    let admin = server.admin();
    let guards = hold_many(&connect(&server.url()).await).await;
    wait::until_async(LIMIT, async || refusals(&admin) > 0).await;
    for _ in 0..2 {
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        elapse(LEASE).await;
    }
    assert!(guards.iter().all(LockGuard::is_held));
}

#[tokio::test]
async fn a_refused_renewal_ends_its_own_lease_alone() {
    let server = Server::builder().user("app", &app()).start();
    let locker = connect(&server.url_with("app", "secret", 0)).await;
    let (renewed, lost) = (hold(&locker, "renewed").await, hold(&locker, "lost").await);
    allow_only(&server, &["~disLock:renewed", "~lockable:*"]);
    let error = in_time(LEASE, lost.lost()).await;
    assert_refused(&error);
    elapse(2 * LEASE).await;
    assert!(renewed.is_held() && server.admin().pttl("disLock:renewed") > 0);
    renewed.release().await.unwrap();
}

#[tokio::test]
async fn a_loss_names_the_withdrawn_right_to_renew() {
    let server = Server::builder().user("app", &app()).start();
    let locker = connect(&server.url_with("app", "secret", 0)).await;
    let guards = hold_many(&locker).await;
    server.admin().command::<()>(&["ACL", "SETUSER", "app", "-pexpire"]);
    for guard in guards {
        assert_refused(&in_time(LEASE, guard.lost()).await);
    }
}

#[tokio::test]
async fn a_loss_names_the_unanswered_renewals() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    let guard = hold(&locker, "k").await;
    let body = locker.lock("body").expire(LEASE).renew().run(std::future::pending::<()>());
    let body = tokio::spawn(body);
    wait::until_async(LIMIT, async || server.admin().pttl("disLock:body") > 0).await;
    server.pause();
    let lost = in_time(LEASE, guard.lost()).await;
    let stopped = in_time(LEASE, body).await.unwrap().unwrap_err();
    server.resume();
    for error in [lost, stopped] {
        let source = source(&error);
        assert!(source.is_unavailable() && !source.is_refused(), "{source:?}");
        assert!(error.to_string().contains(&source.to_string()), "{error}");
        assert!(!error.to_string().contains("`renew`"), "{error}");
    }
}

fn assert_refused(error: &LockError) {
    let source = source(error);
    assert!(source.is_refused() && source.source().is_some(), "{source:?}");
    assert!(error.to_string().contains(&source.to_string()), "{error}");
}

/// The failed renewal that a loss came from.
fn source(error: &LockError) -> &LockError {
    assert!(error.is_lost() && !error.is_taken(), "{error:?}");
    let source = error.source().unwrap_or_else(|| panic!("a source of: {error}"));
    source.downcast_ref().unwrap()
}

async fn hold_many(locker: &Locker) -> Vec<LockGuard> {
    let mut guards = Vec::with_capacity(MANY);
    for n in 0..MANY {
        guards.push(hold(locker, &format!("many:{n}")).await);
    }
    guards
}

async fn hold(locker: &Locker, key: &str) -> LockGuard {
    locker.lock(key).expire(LEASE).renew().acquire().await.unwrap()
}

fn refusals(admin: &Admin) -> u64 {
    let statistics = admin.info("errorstats");
    let line = statistics.lines().find_map(|line| line.strip_prefix("errorstat_CROSSSLOT:count="));
    line.map_or(0, |count| count.parse().unwrap())
}

fn app() -> String {
    format!("on >secret {}", acl_rights().join(" "))
}

fn allow_only(server: &Server, keys: &[&str]) {
    let words: Vec<_> =
        ["ACL", "SETUSER", "app", "resetkeys"].iter().chain(keys).copied().collect();
    server.admin().command::<()>(&words);
}
