//! Renewals that the server refuses, or does not answer: which leases that ends, and what their holders learn.

use lockable_runtime::LockErrorKind;
use std::error::Error;
use std::time::Duration;

use lockable_runtime::__internals::Verbs;
use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::sections;
use lockable_tests::{Admin, Cue, Server, StubNodes, cluster, wait};
use tokio::task::JoinSet;

use crate::support::{LIMIT, LONG, acl_rights, connect_ample, server_and_locker};

/// Of leases whose end is waited for. Tries are made from a third of it on.
const LEASE: Duration = Duration::from_secs(6);

/// Of leases that must not end.
const KEPT: Duration = Duration::from_secs(9);

const MANY: usize = 40;

/// Goal: a cluster costs each connection one refused command, that of its probe, and not one for each renewal or
/// release.
/// Method: the server counts its refusals; releases that are asked for at once are batched elsewhere.
#[tokio::test]
async fn after_one_refusal_no_command_mixes_slots() {
    let (admin, locker, _server) = node().await;
    let guards = hold_many(&locker, KEPT).await;
    renewed(&admin, MANY).await;
    let first = refusals(&admin);
    assert!(first > 0);
    renewed(&admin, MANY).await;
    assert_eq!(refusals(&admin), first);
    // Also where the connection is another one.
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    renewed(&admin, 2 * MANY).await;
    assert!(guards.iter().all(|guard| guard.lease().is_held()));
    let releases: JoinSet<_> = guards.into_iter().map(LockGuard::release).collect();
    releases.join_all().await.into_iter().for_each(Result::unwrap);
    assert!(refusals(&admin) <= 2 * first);
    assert!(admin.keys("disLock:*").is_empty());
}

/// Goal: a connection whose probe could not find that out, because the server was full, has it refused once.
/// Method: renewals by hand, and a stub node that counts the commands about one of their locks.
#[tokio::test]
async fn a_refusal_after_the_probe_is_remembered() {
    let server = Server::start();
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let verbs = Verbs::open_impatient(&stub_nodes.url_of(0), LONG).unwrap();
    server.admin().command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let first = (verbs.attempt("first", KEPT, None).unwrap(), Some(KEPT));
    verbs.renew(&[first]).await.unwrap();
    server.admin().command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    let renewals = ["a", "b"].map(|key| (verbs.attempt(key, KEPT, None).unwrap(), Some(KEPT)));
    for commands in [2, 3, 4] {
        let renewed = verbs.renew(&renewals).await.unwrap();
        assert_eq!(format!("{renewed:?}"), "[Absent, Absent]");
        assert_eq!(stub_nodes.count(0, &Cue::all().about("a")), commands);
    }
}

#[tokio::test]
async fn a_clusters_forgotten_scripts_are_sent_one_by_one() {
    let (admin, locker, _server) = node().await;
    let guards = hold_many(&locker, KEPT).await;
    renewed(&admin, MANY).await;
    for _ in 0..2 {
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        renewed(&admin, MANY).await;
    }
    assert!(guards.iter().all(|guard| guard.lease().is_held()));
}

/// A node of a cluster, which refuses commands about several slots.
async fn node() -> (Admin, Locker, Server) {
    let server = cluster::start(&Server::builder(), 1).remove(0);
    (server.admin(), connect_ample(&server.url()).await, server)
}

/// Waits for `count` more renewals.
async fn renewed(admin: &Admin, count: usize) {
    let wanted = admin.command_calls("pexpire") + count as u64;
    wait::until_async(LIMIT, async || admin.command_calls("pexpire") >= wanted).await;
}

/// Method: a new connection checks both leases together, and from then on both are due at the same time.
#[tokio::test]
async fn a_refused_renewal_ends_its_own_lease_alone() {
    let (server, locker) = app().await;
    let (others, lost) = (hold(&locker, "renewed", KEPT).await, hold(&locker, "lost", KEPT).await);
    let rules = ["ACL", "SETUSER", "app", "resetkeys", "~disLock:renewed", "~lockable:*"];
    server.admin().command::<()>(&rules);
    server.admin().command::<u64>(&["CLIENT", "KILL", "USER", "app"]);
    assert_refused(&wait::ends(lost.lease().lost()).await);
    sections::renewed(&others).await;
    others.release().await.unwrap();
}

#[tokio::test]
async fn a_loss_names_the_withdrawn_right_to_renew() {
    let (server, locker) = app().await;
    let guards = hold_many(&locker, LEASE).await;
    server.admin().command::<()>(&["ACL", "SETUSER", "app", "-pexpire"]);
    for guard in guards {
        assert_refused(&wait::ends(guard.lease().lost()).await);
    }
}

#[tokio::test]
async fn a_loss_names_the_unanswered_renewals() {
    let (server, locker) = server_and_locker().await;
    let guard = hold(&locker, "k", LEASE).await;
    let body = locker.lock("body").expire(LEASE).renew().run(std::future::pending::<()>());
    let body = tokio::spawn(body);
    wait::until_async(LIMIT, async || server.admin().pttl("disLock:body") > 0).await;
    server.pause();
    let lost = wait::ends(guard.lease().lost()).await;
    let stopped = wait::ends(body).await.unwrap().unwrap_err();
    server.resume();
    for error in [lost, stopped] {
        let source = source(&error);
        assert!(source.is_unavailable() && source.kind() != LockErrorKind::Refused, "{source:?}");
        assert!(error.to_string().contains(&source.to_string()), "{error}");
        assert!(!error.to_string().contains("`renew`"), "{error}");
    }
}

/// The last try was refused.
fn assert_refused(error: &LockError) {
    let source = source(error);
    let is_refused = source.kind() == LockErrorKind::Refused && source.source().is_some();
    assert!(is_refused, "{source:?}");
    assert!(error.to_string().contains(&source.to_string()), "{error}");
}

/// The failed renewal that a loss came from.
fn source(error: &LockError) -> &LockError {
    assert!(error.is_lost() && !error.is_taken(), "{error:?}");
    let source = error.source().unwrap_or_else(|| panic!("a source of: {error}"));
    source.downcast_ref().unwrap()
}

async fn hold_many(locker: &Locker, lease: Duration) -> Vec<LockGuard> {
    let mut guards = Vec::with_capacity(MANY);
    for n in 0..MANY {
        guards.push(hold(locker, &format!("many:{n}"), lease).await);
    }
    guards
}

async fn hold(locker: &Locker, key: &str, lease: Duration) -> LockGuard {
    locker.lock(key).expire(lease).renew().acquire().await.unwrap()
}

fn refusals(admin: &Admin) -> u64 {
    let statistics = admin.info("errorstats");
    let line = statistics.lines().find_map(|line| line.strip_prefix("errorstat_CROSSSLOT:count="));
    line.map_or(0, |count| count.parse().unwrap())
}

/// A user with the documented rights.
async fn app() -> (Server, Locker) {
    let rules = format!("on >secret {}", acl_rights().join(" "));
    let server = Server::builder().user("app", &rules).start();
    let locker = connect_ample(&server.url_with("app", "secret", 0)).await;
    (server, locker)
}
