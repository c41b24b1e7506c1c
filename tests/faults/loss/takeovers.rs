//! Losses that another client brings, whose data is left alone.

use std::time::Duration;

use lockable_tests::{Admin, Server};

use super::stepping::Stepping;
use crate::support::connect;

const LEASE: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_deletion_stops_the_body_at_the_next_renewal() {
    let taken = taken_over("deleted", Admin::del, "no one holds it").await;
    assert_eq!(taken, "none");
}

#[tokio::test]
async fn a_takeover_stops_the_body_at_the_next_renewal() {
    let set = |admin: &Admin, key: &str| admin.set(key, "another");
    let taken = taken_over("taken", set, "another holder has it").await;
    assert_eq!(taken, "string");
}

#[tokio::test]
async fn foreign_data_stops_the_body_at_the_next_renewal() {
    let push = |admin: &Admin, key: &str| {
        admin.del(key);
        admin.command::<()>(&["LPUSH", key, "another"]);
    };
    assert_eq!(taken_over("pushed", push, "another holder has it").await, "list");
}

/// What is at the key after the body was stopped, once it is known to stay.
async fn taken_over(name: &str, takeover: impl Fn(&Admin, &str), why: &str) -> String {
    let server = Server::start();
    let admin = server.admin();
    let locker = connect(&server.url()).await;
    let body = Stepping::start(&locker, name, LEASE).await;
    let key = body.key.clone();
    takeover(&admin, &key);
    body.ends_by_refusal(why).await;
    // Also what the call hands to the background, if anything, is over then.
    locker.lock("other").run(async {}).await.unwrap();
    let life = admin.pttl(&key);
    assert!(life < 0, "{key} was given {life} ms to live");
    admin.type_of(&key)
}
