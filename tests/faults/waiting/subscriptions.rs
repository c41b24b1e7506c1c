//! Which connections waiting opens, and lockers that share a process.

use std::time::Duration;

use lockable_tests::wait;
use tokio::task::JoinSet;

use super::support::{
    are_served, connect, connect_rechecking, held_beside_proxy, in_queue, is_over, is_served_last,
    kill_subscribers, origin, owners_in_queue, server_and_locker, subscribers, waited_for,
};
use crate::support::{LIMIT, LONG, elapse, server_and_proxy};

#[tokio::test]
async fn calls_that_need_not_wait_never_subscribe() {
    let (server, locker) = server_and_locker().await;
    for _ in 0..20 {
        let guard = locker.lock("k").acquire().await.unwrap();
        assert!(locker.lock("k").try_acquire().await.unwrap_err().is_busy());
        assert!(locker.lock("k").try_run(async {}).await.unwrap_err().is_busy());
        guard.release().await.unwrap();
    }
    assert_eq!(server.admin().command_calls("subscribe"), 0);
}

#[tokio::test]
async fn a_hundred_waiters_of_ten_keys_share_one_subscription() {
    let (server, locker) = server_and_locker().await;
    let (other, mut guards) = (connect(&server.url()).await, Vec::new());
    for key in 0..10 {
        guards.push(other.lock(format!("n:{key}")).acquire().await.unwrap());
    }
    let waiters: Vec<_> = (0..100)
        .map(|n| tokio::spawn(locker.lock(format!("n:{}", n % 10)).wait(LONG).acquire()))
        .collect();
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.keys("lockable:queue:*").len() == 10).await;
    assert_eq!((subscribers(&admin), admin.command_calls("subscribe")), (1, 1));
    for guard in guards {
        guard.release().await.unwrap();
    }
    for waiter in waiters {
        wait::ends(waiter).await.unwrap().unwrap().release().await.unwrap();
    }
    assert_eq!(admin.command_calls("subscribe"), 1);
    assert_eq!([admin.keys("lockable:queue:*"), admin.keys("disLock:*")].concat(), [""; 0]);
}

/// Nothing else is sent there that would show a server which hangs.
#[tokio::test]
async fn a_silent_subscription_is_asked_whether_it_lives() {
    let (server, guard, waiter) = waited_for().await;
    let admin = server.admin();
    let pings = admin.command_calls("ping");
    wait::until_async(LIMIT, async || admin.command_calls("ping") > pings).await;
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}

/// Goal: a wake-up that the server takes as heard, and that never arrives, is a wait without an end.
/// Method: the subscription of the first is open, and its messages are held back. Where that one is late, the second goes
/// first.
#[tokio::test]
async fn a_locker_without_its_subscription_waits_for_the_recheck() {
    let (server, proxy, _locker, guard) = held_beside_proxy().await;
    let first = in_queue(&server, &connect_rechecking(&proxy.url()).await).await;
    let second = in_queue(&server, &connect(&server.url()).await).await;
    proxy.hold_messages();
    guard.release().await.unwrap();
    are_served([first, second]).await;
    is_over(&server).await;
}

/// Goal: when wake-ups may have been missed, the lines do not ask all at the same moment.
/// Method: the answers of the connection that asks are held back, so that what is asked stays asked.
#[tokio::test]
async fn a_new_subscription_limits_the_lines_asked_at_once() {
    const LINES: usize = 400;
    const LIMITED: u64 = 256;
    let (server, proxy) = server_and_proxy();
    let locker = connect(&proxy.url()).await;
    let holder = connect(&server.url()).await;
    let (mut guards, mut waiters) = (Vec::new(), JoinSet::new());
    for line in 0..LINES {
        let key = format!("n:{line}");
        guards.push(holder.lock(&key).acquire().await.unwrap());
        waiters.spawn(locker.lock(&key).acquire());
    }
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.keys("lockable:queue:*").len() == LINES).await;
    proxy.hold_open_replies();
    let asked = admin.command_calls("lpos");
    kill_subscribers(&admin);
    wait::until_async(LIMIT, async || admin.command_calls("lpos") > asked).await;
    elapse(Duration::from_millis(500)).await;
    // Fewer where an answer to an earlier query was held back, too.
    let limited = admin.command_calls("lpos") - asked;
    assert!(limited <= LIMITED, "{limited}");
    proxy.release_replies();
    // The others have their turn when those were answered.
    wait::until_async(LIMIT, async || admin.command_calls("lpos") >= asked + LINES as u64).await;
    waiters.abort_all();
}

#[tokio::test]
async fn an_earlier_waiter_hears_over_a_new_subscription() {
    let (server, guard, waiter) = waited_for().await;
    let admin = server.admin();
    let channel = format!("lockable:grant:{}", origin(&owners_in_queue(&admin)[0]));
    for _ in 0..2 {
        kill_subscribers(&admin);
        let channels = async || admin.command::<Vec<String>>(&["PUBSUB", "CHANNELS", &channel]);
        wait::until_async(LIMIT, async || !channels().await.is_empty()).await;
    }
    guard.release().await.unwrap();
    is_served_last(&server, waiter).await;
}
