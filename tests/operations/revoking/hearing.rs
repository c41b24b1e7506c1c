//! The subscription on which a process hears of operators: when there is one, and what breaks it.

use std::time::Duration;

use lockable_runtime::admin::Revoked;
use lockable_runtime::{LockGuard, Locker};
use lockable_tests::{Cluster, Proxy, Sentinels, Server};

use super::support::{ask, held, listeners, listens};
use crate::support::{connect, until};

/// Asks the holder of `k`, who lets go of it.
async fn is_asked(operator: &Locker, guard: LockGuard) {
    let seen = held(operator, "k").await;
    ask(operator, &seen, guard).await;
}

#[tokio::test]
async fn a_subscription_that_breaks_is_opened_again() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let (holder, operator) = (connect(&proxy.url()).await, connect(&server.url()).await);
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let seen = listens(&server, &operator, "k").await;
    let process = seen.holder().process().unwrap();
    let channel = format!("lockable:revoke:{process}");
    let admin = server.admin();
    let subscribed = admin.command_calls("subscribe");
    proxy.cut();
    until(async || admin.command_calls("subscribe") > subscribed).await;
    until(async || listeners(&admin, &channel) == 1).await;
    is_asked(&operator, guard).await;
}

#[tokio::test]
async fn a_locker_that_is_gone_listens_no_more() {
    let server = Server::start();
    let (holder, operator) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let seen = listens(&server, &operator, "k").await;
    let channel = format!("lockable:revoke:{}", seen.holder().process().unwrap());
    drop(holder);
    assert_eq!(listeners(&server.admin(), &channel), 1, "a guard outlives its locker");
    guard.release().await.unwrap();
    until(async || listeners(&server.admin(), &channel) == 0).await;
}

#[tokio::test]
async fn a_holder_is_asked_after_a_failover() {
    let group = Sentinels::start();
    let (holder, operator) = (connect(&group.url()).await, connect(&group.url()).await);
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    listens(group.primary(), &operator, "k").await;
    let after = group.fail_over();
    listens(after, &operator, "k").await;
    assert!(guard.lease().is_held());
    is_asked(&operator, guard).await;
}

/// Method: a command of the holder's process learns that the server which it knows is a replica now.
#[tokio::test]
async fn a_holder_is_asked_after_a_failover_behind_one_address() {
    let (old, new) = (Server::start(), Server::start());
    new.admin().follow(old.addr());
    let proxy = Proxy::start(&old);
    let holder = connect(&proxy.url()).await;
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    listens(&old, &holder, "k").await;
    proxy.fail_over(&old, &new);
    holder.lock("other").try_run(async {}).await.unwrap();
    let operator = connect(&new.url()).await;
    listens(&new, &operator, "k").await;
    is_asked(&operator, guard).await;
}

/// Goal: a server that refuses the subscription is not asked for it again and again.
#[tokio::test]
async fn a_holder_that_may_not_listen_is_named() {
    let rules = "on >secret ~* &* +@all -subscribe";
    let server = Server::builder().user("app", rules).start();
    let url = server.url_with("app", "secret", 0);
    let (holder, operator) = (connect(&url).await, connect(&server.url()).await);
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let admin = server.admin();
    let refused = |count: u64| {
        let calls = admin.info("commandstats");
        let mut lines = calls.lines().filter(|line| line.starts_with("cmdstat_subscribe:"));
        lines.any(|line| line.contains(&format!("rejected_calls={count},")))
    };
    until(async || refused(1)).await;
    let asked = operator
        .admin()
        .revoke(&held(&operator, "k").await, "why", Duration::from_secs(5))
        .await
        .unwrap();
    assert!(matches!(asked, Revoked::NotListening { remaining: Some(_) }), "{asked:?}");
    assert!(guard.lease().is_held());
    guard.release().await.unwrap();
    assert!(refused(1));
}

/// Goal: one subscription at one node hears of the locks of all, also when it breaks.
#[tokio::test]
async fn a_process_listens_at_one_node_of_a_cluster() {
    let cluster = Cluster::builder().shards(2).replicas(0).start();
    let (holder, operator) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
    let admins: Vec<_> = cluster.masters().map(Server::admin).collect();
    let of_cluster =
        |channel: &str| -> u64 { admins.iter().map(|admin| listeners(admin, channel)).sum() };
    for round in 0..2 {
        let mut guards = Vec::new();
        for master in cluster.masters() {
            let name = cluster.name_at(master, &format!("disLock:{round}:"));
            let key = name.trim_start_matches("disLock:").to_owned();
            guards.push((holder.lock(&key).renew().acquire().await.unwrap(), key));
        }
        let process = held(&operator, &guards[0].1).await.holder().process().unwrap();
        let channel = format!("lockable:revoke:{process}");
        until(async || of_cluster(&channel) == 1).await;
        for (guard, key) in guards {
            let seen = held(&operator, &key).await;
            // Not each node knows that the process listens.
            let asked = operator.admin().revoke(&seen, "why", Duration::from_millis(50)).await;
            assert!(matches!(asked, Ok(Revoked::NotReleased { .. })), "{asked:?}");
            ask(&operator, &seen, guard).await;
        }
        for admin in &admins {
            admin.command::<()>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
    }
}
