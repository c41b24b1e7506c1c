//! Grants that someone else has published, who may read the queue and publish on the channels of grants.

use std::time::Duration;

use lockable_tests::{Admin, wait};
use rstest::rstest;

use super::support::{
    QUEUE, connect_rechecking, held_beside_proxy, in_queue, is_served_last, released, waiter,
};
use crate::support::{KEY, LIMIT};

/// Goal: a grant whose token is far ahead of its time starts no body while another holder has the lock, poisons no
/// fence, and costs the waiter nothing.
/// Method: as the server publishes it, but with such tokens and times, until the waiter has asked whether it is true.
#[rstest]
#[case::of_the_highest_token(|now: u64| (u64::MAX, now))]
#[case::of_a_token_just_ahead(|now: u64| (now + 18, now))]
#[case::of_a_time_to_come(|_| (u64::MAX - 9, u64::MAX - 9))]
#[tokio::test]
async fn a_forged_grant_is_claimed(#[case] forge: fn(u64) -> (u64, u64)) {
    let (server, proxy, _locker, guard) = held_beside_proxy().await;
    let locker = connect_rechecking(&proxy.url()).await;
    let (admin, first) = (server.admin(), in_queue(&server, &locker).await);
    let asked = proxy.commands("EVALSHA");
    for _ in 0..3 {
        let (token, time) = forge(now(&admin));
        publish(&admin, token, time);
    }
    wait::until_async(LIMIT, async || proxy.commands("EVALSHA") > asked + 2).await;
    assert!(!first.is_finished() && guard.lease().is_held());
    guard.release().await.unwrap();
    let next = wait::ends(first).await.unwrap();
    assert!(
        u64::from(next.lease().fencing_token()) <= now(&admin),
        "{}",
        next.lease().fencing_token()
    );
    let last = waiter(&locker);
    released(&next.release().await);
    is_served_last(&server, last).await;
}

/// To the waiter in the queue, for a minute.
fn publish(admin: &Admin, token: u64, time: u64) {
    let [entry] = &admin.command::<Vec<String>>(&["LRANGE", QUEUE, "0", "-1"])[..] else {
        unreachable!("one process waits")
    };
    let (_, owner) = entry.split_once(' ').expect("an entry has two parts");
    let (process, _) = owner.split_once('.').expect("a token has a process");
    let lease = Duration::from_secs(60).as_millis();
    let grant = format!("{token}\n{time}\n{lease}\n{owner}\n{KEY}");
    let heard: u64 = admin.command(&["PUBLISH", &format!("lockable:grant:{process}"), &grant]);
    assert_eq!(heard, 1);
}

fn now(admin: &Admin) -> u64 {
    let [seconds, micros] = admin.command::<[u64; 2]>(&["TIME"]);
    seconds * 1_000_000 + micros
}
