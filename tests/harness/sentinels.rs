//! A group of Sentinels switches to a replica when it should.

use std::time::Duration;

use lockable_tests::{Admin, Sentinels, Server, Tls, wait};

#[test]
fn a_group_starts_with_one_primary_and_its_replicas() {
    let group = Sentinels::start();
    assert_eq!(group.primary().addr(), group.servers()[0].addr());
    assert_eq!((group.replicas().count(), group.sentinels().len()), (2, 3));
    group.primary().admin().set("key", "value");
    for replica in group.replicas() {
        let admin = replica.admin();
        wait::until(LIMIT, || admin.get("key").is_some());
    }
}

#[tokio::test]
async fn a_killed_primary_is_replaced() {
    let group = Sentinels::start();
    let mut switches = group.switches();
    let before = group.kill_primary();
    let published = switches.next().await;
    let after = group.other_than(before);
    assert_eq!(published, after.addr());
    after.admin().set("key", "value");
}

#[tokio::test]
async fn a_failover_replaces_a_primary_that_runs() {
    let group = Sentinels::start();
    let mut switches = group.switches();
    for _ in 0..2 {
        let before = group.primary();
        let after = group.fail_over();
        assert_ne!(before.addr(), after.addr());
        for _ in group.sentinels() {
            assert_eq!(switches.next().await, after.addr());
        }
    }
    all_follow(group.primary());
}

#[test]
fn an_isolated_primary_keeps_its_clients_and_is_replaced() {
    let group = Sentinels::builder().user("app", "on >word ~* +@all").start();
    let client = Admin::connect(&group.primary().url());
    let before = group.isolate_primary();
    let after = group.other_than(before);
    client.set("key", "value");
    assert_eq!((client.get("key").as_deref(), after.admin().get("key")), (Some("value"), None));
    Admin::connect(&before.url_with("app", "word", 0)).set("key", "other");
}

#[test]
fn groups_with_passwords_and_certificates_switch_too() {
    let tls = Tls::generate();
    let secret = Sentinels::builder().password("one").sentinel_password("two");
    for builder in [secret.clone(), secret.mutual_tls(&tls)] {
        let group = builder.start();
        all_follow(group.fail_over());
    }
}

#[test]
fn a_frozen_sentinel_does_not_prevent_a_switch() {
    let group = Sentinels::builder().at_usual_periods().start();
    group.sentinels()[2].pause();
    let before = group.primary();
    assert_ne!(before.addr(), group.fail_over().addr());
    group.sentinels()[2].resume();
    group.other_than(before);
}

#[test]
fn a_restarted_sentinel_has_not_forgotten_the_switch() {
    let group = Sentinels::start();
    let before = group.primary();
    let after = group.fail_over();
    group.sentinels()[0].restart();
    assert_eq!(group.other_than(before).addr(), after.addr());
}

/// All servers but the new primary are its replicas, the old one too.
fn all_follow(primary: &Server) {
    let admin = primary.admin();
    wait::until(LIMIT, || admin.info("replication").matches("state=online").count() == 2);
}

const LIMIT: Duration = Duration::from_secs(20);
