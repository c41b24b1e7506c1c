//! Places in a queue whose processes have died.

use std::future::Future;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Server, unless_busy, wait};
use rstest::rstest;

use super::support::{ample, process, server_and};
use crate::support::{LIMIT, LONG};

/// What is locked.
#[derive(Clone, Copy, Debug)]
enum What {
    Lock,
    Permit,
    AllPermits,
    Keys,
}

use What::{AllPermits, Keys, Lock, Permit};

impl What {
    /// What has to be held so that a call waits.
    fn in_the_way(self) -> Self {
        if matches!(self, Permit) { AllPermits } else { self }
    }

    /// The orders to a process that holds, and to one that waits.
    fn orders(self) -> [&'static str; 2] {
        match self {
            Lock => ["wait"; 2],
            Permit | AllPermits => ["permits", "permit"],
            Keys => ["all"; 2],
        }
    }

    /// Whether a call that does not wait has run the body.
    async fn runs(self, locker: &Locker, hold: Duration, body: impl Future<Output = ()>) -> bool {
        let lock = || locker.lock("k").min_hold(hold);
        let ran = match self {
            Lock => lock().try_run(body).await,
            Permit => lock().permits(3).try_run(body).await,
            AllPermits => lock().all_permits(3).try_run(body).await,
            Keys => locker.lock_all(["a", "k", "z"]).min_hold(hold).try_run(body).await,
        };
        unless_busy(ran).is_some()
    }
}

/// A process waits and is killed. Its place outlasts every test.
async fn a_waiter_dies(server: &Server, what: What) {
    let admin = server.admin();
    let mut waiter = process(&server.url());
    waiter.say(&format!("{} 300000", what.orders()[1]));
    wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()).await;
    drop(waiter.kill());
}

/// The server has heard of the deaths.
async fn no_one_listens(server: &Server) {
    let admin = server.admin();
    let channels = ["PUBSUB", "CHANNELS", "lockable:grant:*"];
    wait::until_async(LIMIT, async || admin.command::<Vec<String>>(&channels).is_empty()).await;
}

/// Goal: a place that no one is in keeps those out who do not wait.
/// Method: the leases are ended at the server.
#[rstest]
#[tokio::test]
async fn a_dead_waiter_behind_a_dead_holder_keeps_no_one_out(
    #[values(Lock, Permit, AllPermits, Keys)] what: What,
) {
    let (server, locker) = server_and(ample).await;
    let mut holder = process(&server.url());
    assert_eq!(holder.ask(&format!("{} 300000", what.orders()[0])), "held");
    a_waiter_dies(&server, what).await;
    drop(holder.kill());
    no_one_listens(&server).await;
    let admin = server.admin();
    for lock in admin.keys("disLock:*") {
        admin.command::<()>(&["PEXPIRE", &lock, "1"]);
    }
    let is_free = async || what.runs(&locker, Duration::ZERO, async {}).await;
    wait::until_async(LIMIT, is_free).await;
}

#[rstest]
#[tokio::test]
async fn a_dead_waiter_behind_a_minimum_hold_keeps_no_one_out(
    #[values(Lock, Permit, AllPermits, Keys)] what: What,
) {
    let (server, locker) = server_and(ample).await;
    let hold = Duration::from_secs(1);
    let waiter = a_waiter_dies(&server, what);
    assert!(what.in_the_way().runs(&locker, hold, waiter).await);
    no_one_listens(&server).await;
    let is_free = async || what.runs(&locker, Duration::ZERO, async {}).await;
    wait::until_async(LIMIT, is_free).await;
}

/// Goal: a call that does not wait overtakes one that does.
/// Method: permits become free by the end of a minimum hold, of which no message tells the waiter.
#[tokio::test]
async fn a_try_for_a_permit_has_those_served_who_wait() {
    let (server, locker) = server_and(ample).await;
    let other = ample(&server.url()).connect().await.unwrap();
    let all = other.lock("k").all_permits(3).min_hold(Duration::from_millis(300));
    let all = all.acquire().await.unwrap();
    let waiter = tokio::spawn(locker.lock("k").permits(3).wait(LONG).acquire());
    let admin = server.admin();
    wait::until_async(LIMIT, async || !admin.keys("lockable:queue:*").is_empty()).await;
    all.release().await.unwrap();
    let mut found = None;
    wait::until_async(LIMIT, async || {
        found = unless_busy(other.lock("k").permits(3).try_acquire().await);
        found.is_some()
    })
    .await;
    let found = found.unwrap();
    assert_eq!(found.lease().key().as_str(), "disLock:{k}#2", "the waiter has the first");
    wait::ends(waiter).await.unwrap().unwrap().release().await.unwrap();
    found.release().await.unwrap();
}
