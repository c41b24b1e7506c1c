//! What a locker that is dropped leaves: no connection, or a process that makes lockers collects them.

use lockable_runtime::Locker;
use lockable_tests::{Admin, Cluster, Sentinels, Server, wait};

use crate::support::{LIMIT, LONG};
use crate::waiting::support::connect_rechecking;

#[tokio::test]
async fn a_dropped_locker_leaves_no_connection() {
    let server = Server::start();
    leave_none(&server.url(), &[server.admin()]).await;
}

#[tokio::test]
async fn a_dropped_locker_leaves_no_connection_behind_sentinels() {
    let group = Sentinels::start();
    let all = group.sentinels().iter().chain(group.servers());
    leave_none(&group.url(), &all.map(Server::admin).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_dropped_locker_leaves_no_connection_to_a_cluster() {
    let cluster = Cluster::start();
    let admins: Vec<_> = cluster.servers().map(Server::admin).collect();
    leave_none(&cluster.url(), &admins).await;
}

async fn leave_none(url: &str, admins: &[Admin]) {
    {
        let (first, second) = (connect_rechecking(url).await, connect_rechecking(url).await);
        hand_off(&first, &second).await;
        hand_off(&second, &first).await;
        assert!(connections(admins) > 2);
    }
    wait::until_async(LIMIT, async || connections(admins) == 0).await;
}

/// With what opens the connections that wake up waiters, renew, and report deletions.
async fn hand_off(one: &Locker, other: &Locker) {
    let held = one.lock("k").renew().acquire().await.unwrap();
    let waiter = tokio::spawn(other.lock("k").wait(LONG).acquire());
    wait::until_async(LIMIT, async || !one.admin().queue("k").await.unwrap().is_empty()).await;
    held.release().await.unwrap();
    wait::ends(waiter).await.unwrap().unwrap().release().await.unwrap();
}

/// Those of lockers; the subscriptions of Sentinels are theirs.
fn connections(admins: &[Admin]) -> usize {
    let is_of_locker = |line: &&str| line.contains(" name=lockable:");
    let is_of_sentinel = |line: &&str| line.contains(" name=sentinel-");
    let count = |admin: &Admin| {
        let all: String = admin.command(&["CLIENT", "LIST", "TYPE", "normal"]);
        let subscribed: String = admin.command(&["CLIENT", "LIST", "TYPE", "pubsub"]);
        let subscribed = subscribed.lines().filter(|line| !is_of_sentinel(line)).count();
        all.lines().filter(is_of_locker).count() + subscribed
    };
    admins.iter().map(count).sum()
}
