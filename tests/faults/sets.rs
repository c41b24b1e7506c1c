//! Calls for several keys that lose a node, and a process that stands still under them.

use std::cell::Cell;
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::sections::is_clean;
use lockable_tests::{Cluster, Server, long_form, wait};

use crate::support::{LIMIT, LONG, boot_time, elapse, patient};
use crate::waiting::support::{connect_rechecking, is_over, process};

/// Goal: whatever becomes of the node of one key, the body stops before its leases can end, and the other key is free
/// with the outcome.
/// Method: the other key is at a node that lasts. A replica that has never heard of the lock takes the place of one node;
/// then another one is frozen, and one is killed that nothing replaces.
#[tokio::test]
async fn a_call_for_several_keys_stops_before_the_leases_of_a_lost_node_end() {
    let cluster = Cluster::builder().shards(3).replicas(1).steady().start();
    let [first, second, third, replica] = cluster.servers().collect::<Vec<_>>()[..] else {
        unreachable!()
    };
    let locker = patient(&cluster.url()).connect_deadline(LONG).connect().await.unwrap();
    let at = |failing, lasting| Keys::new(&cluster, &locker, failing, lasting);
    let replaced = at(first, second);
    replaced.stop_with(LONG, || take_over(first, replica)).await;
    replaced.are_free().await;
    let (frozen, killed) = (at(second, replica), at(third, replica));
    tokio::join!(
        frozen.stop_with(LEASE, || second.pause()),
        killed.stop_with(LEASE, || third.kill())
    );
    second.resume();
    frozen.are_free().await;
    for server in [second, replica] {
        is_clean(server).await;
    }
}

/// It is renewed after a third of it: the rest is for a machine that stalls.
const LEASE: Duration = Duration::from_secs(2);

/// A key at a node that fails, and one at a node that does not.
struct Keys<'a> {
    locker: &'a Locker,
    lasting: &'a Server,
    lost: String,
    kept: String,
}

impl<'a> Keys<'a> {
    fn new(cluster: &Cluster, locker: &'a Locker, failing: &Server, lasting: &'a Server) -> Self {
        let start = format!("disLock:{}:", failing.addr().port());
        let [lost, kept] = [failing, lasting].map(|server| cluster.name_at(server, &start));
        Self { locker, lasting, lost, kept }
    }

    fn keys(&self) -> [&str; 2] {
        [&self.lost, &self.kept].map(|name| name.trim_start_matches("disLock:"))
    }

    /// A body under both keys loses one of them.
    async fn stop_with(&self, lease: Duration, fail: impl FnOnce()) {
        let last = Cell::new(None);
        let body = async {
            loop {
                last.set(Some(boot_time()));
                elapse(Duration::from_millis(2)).await;
            }
        };
        let failing = async {
            wait::until_async(LIMIT, async || last.get().is_some()).await;
            elapse(lease.min(LEASE) / 2).await;
            fail();
            boot_time()
        };
        let request = self.locker.lock_all(self.keys()).expire(lease).renew();
        let (outcome, failed) = tokio::join!(request.run::<_>(body), failing);
        let error = outcome.unwrap_err();
        assert!(error.is_lost() && error.key() == Some(&*self.lost), "{error}");
        // Nothing has renewed the lost lock since then.
        let late = last.get().unwrap().saturating_sub(failed);
        println!("{lease:?} of lease: the body continues for {late:?}");
        assert!(late < lease, "{late:?}");
        assert_eq!(self.lasting.admin().get(&self.kept), None);
    }

    async fn are_free(&self) {
        let set = self.locker.lock_all(self.keys()).acquire().await.unwrap();
        set.release().await.unwrap();
    }
}

/// The replica leads without what its master has written.
fn take_over(master: &Server, replica: &Server) {
    let admin = replica.admin();
    admin.command::<()>(&["CONFIG", "SET", "replica-read-only", "no"]);
    master.kill();
    admin.flush();
    admin.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    assert_eq!(admin.keys("*"), [""; 0]);
}

/// Goal: a process that stands still for longer than its leases takes no step under its keys after that.
/// Method: SIGSTOP while its body takes a step each millisecond; SIGCONT when this process has all of the keys.
#[tokio::test]
async fn a_stopped_holder_of_several_keys_takes_no_step_after_its_leases() {
    let server = Server::start();
    let locker = connect_rechecking(&server.url()).await;
    let mut stopped = process(&server.url());
    for _ in 0..long_form(1, 50) {
        stopped.say("body 1000");
        let mut step = stopped.hear();
        stopped.pause();
        let all = locker.lock_all(["a", "k", "z"]).acquire();
        let set = wait::ends(all).await.unwrap();
        let others = boot_time().as_nanos();
        stopped.resume();
        while !step.starts_with("lost ") {
            assert!(step.parse::<u128>().unwrap() < others, "a step after the leases");
            step = stopped.hear();
        }
        assert!(step.starts_with("lost disLock:"), "{step}");
        assert_eq!(stopped.hear(), "free");
        assert!(set.leases().is_held());
        set.release().await.unwrap();
    }
    stopped.finish();
    is_over(&server).await;
}
