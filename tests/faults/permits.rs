//! Permits of a server: under load, after scripts were forgotten, and beside other data.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::__internals::{Place, Verbs};
use lockable_runtime::{LockGuard, LockRequest, Locker};
use lockable_tests::cluster::slot;
use lockable_tests::sections::{Sections, is_clean, is_clean_everywhere};
use lockable_tests::{Cluster, Sentinels, Server, long_form, wait};
use rstest::rstest;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{LIMIT, LONG, connect_ample, elapse};
use crate::waiting::support::process;

const PERMITS: usize = 3;
const QUEUE: &str = "lockable:queue:#:disLock:{k}";

fn permit(locker: &Locker) -> LockRequest {
    locker.lock("k").permits(3).wait(LONG)
}

/// Goal: a permit with two holders, a caller that is passed over, and a process that asks more often than it has to.
/// Method: sixteen callers in each of four processes. All take the same time inside, so who comes first leaves first.
#[tokio::test]
async fn processes_share_the_permits_of_a_key_evenly() {
    const CALLERS: usize = 16;
    const PROCESSES: usize = 4;
    let server = Server::start();
    let admin = server.admin();
    let all = long_form(1_600, 16_000);
    let (inside, begun) = (Arc::new(Sections::default()), Arc::new(AtomicUsize::new(0)));
    let (mut callers, mut lockers) = (JoinSet::new(), Vec::new());
    for _ in 0..PROCESSES {
        lockers.push(connect_ample(&server.url()).await);
    }
    for caller in 0..CALLERS * PROCESSES {
        let locker = lockers[caller % PROCESSES].clone();
        let (inside, begun) = (Arc::clone(&inside), Arc::clone(&begun));
        callers.spawn(async move {
            let mut sections = 0;
            while begun.load(Ordering::SeqCst) < all {
                let guard = permit(&locker).acquire().await.unwrap();
                inside.enter(&guard);
                begun.fetch_add(1, Ordering::SeqCst);
                elapse(Duration::from_millis(2)).await;
                inside.leave(&guard);
                guard.release().await.unwrap();
                sections += 1;
            }
            sections
        });
    }
    let sections = callers.join_all().await;
    inside.assert_sound();
    let all: usize = sections.iter().sum();
    let calls = admin.command_calls("evalsha") + admin.command_calls("eval");
    let (least, most) = (sections.iter().min().unwrap(), sections.iter().max().unwrap());
    println!("{all} sections, {least} to {most} each, {calls} calls of scripts");
    // A quarter of its share: a line whose grant was lost waits for its recheck.
    assert!(4 * least >= all / sections.len(), "{sections:?}");
    assert!(10 * calls <= 32 * u64::try_from(all).unwrap(), "{calls} calls for {all} sections");
    is_clean(&server).await;
}

/// Goal: an error names the key that its call was given, and what is there.
/// Method: other data in the place of the queues, behind which each kind of call waits.
#[tokio::test]
async fn an_error_of_a_call_that_waits_names_its_key_and_its_queue() {
    const GATE: &str = "disLock:{k}#0";
    let server = Server::start();
    let (admin, locker) = (server.admin(), connect_ample(&server.url()).await);
    let all = || locker.lock("k").all_permits(2).wait(LONG).acquire();
    let gate = "lockable:queue::disLock:{k}#0";
    let held = ["disLock:{k}#1", "disLock:{k}#2", "disLock:{k}#3"];
    for name in held {
        admin.set(name, "another's");
    }
    admin.set(QUEUE, "data");
    admin.set(gate, "data");
    let one = permit(&locker).acquire().await.unwrap_err();
    let all_at_permits = all().await.unwrap_err();
    admin.set(GATE, "another's");
    let all_at_gate = all().await.unwrap_err();
    for (error, queue) in [(one, QUEUE), (all_at_permits, QUEUE), (all_at_gate, gate)] {
        let text = error.to_string();
        assert!(text.starts_with("lock `disLock:{k}`: "), "{text}");
        assert!(text.contains(&format!("the queue `{queue}` holds other data")), "{text}");
    }
}

#[tokio::test]
async fn a_crowd_of_one_process_has_as_many_entries_as_permits() {
    let server = Server::start();
    let admin = server.admin();
    let (holder, locker) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let held = [
        permit(&holder).acquire().await,
        permit(&holder).acquire().await,
        permit(&holder).acquire().await,
    ];
    let mut callers = JoinSet::new();
    for _ in 0..1_000 {
        let locker = locker.clone();
        callers.spawn(async move {
            permit(&locker).acquire().await.unwrap().release().await.unwrap();
        });
    }
    let length = || admin.command::<usize>(&["LLEN", QUEUE]);
    wait::until_async(LIMIT, async || length() == PERMITS).await;
    drop(held);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
        if callers.len() % 50 == 0 {
            assert!(length() <= PERMITS, "{} entries", length());
        }
    }
    is_clean(&server).await;
}

#[tokio::test]
async fn forgotten_scripts_cost_no_permit() {
    let server = Server::start();
    let admin = server.admin();
    let (one, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    for _ in 0..3 {
        let mut held = Vec::new();
        for locker in [&one, &other, &one] {
            admin.command::<()>(&["SCRIPT", "FLUSH"]);
            let latest =
                held.last().map_or(0, |guard: &LockGuard| u64::from(guard.lease().fencing_token()));
            held.push(permit(locker).acquire().await.unwrap());
            assert!(u64::from(held.last().unwrap().lease().fencing_token()) > latest);
        }
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        assert!(other.lock("k").permits(3).try_acquire().await.unwrap_err().is_busy());
        let next = tokio::spawn(permit(&other).acquire());
        wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        held.pop().unwrap().release().await.unwrap();
        next.await.unwrap().unwrap().release().await.unwrap();
        for guard in held {
            guard.release().await.unwrap();
        }
    }
    is_clean(&server).await;
}

/// Goal: two permits of one attempt, as it may have after its slot has moved, that go to two holders with one fencing token.
#[tokio::test]
async fn permits_that_are_given_back_together_have_a_token_each() {
    let server = Server::start();
    let (wake, wake_ups) = channel();
    let mut verbs = Verbs::open_impatient(&server.url(), LONG).unwrap();
    verbs.listen(wake);
    let [holder, first, second] =
        [(); 3].map(|()| verbs.attempt_for_permit("{k}", 2, LONG).unwrap());
    for permit in ["{k}#1", "{k}#2"] {
        server.admin().set(permit, holder.owner());
    }
    for waiter in [&first, &second] {
        assert!(matches!(verbs.enqueue(waiter).await.unwrap(), Place::Queued(_)));
    }
    verbs.leave(&holder).await.unwrap();
    let mut latest = 0;
    for (waiter, permit) in [(&first, "{k}#1"), (&second, "{k}#2")] {
        let woken = wake_ups.recv_timeout(LIMIT).unwrap();
        assert_eq!(woken, (permit.to_owned(), waiter.owner().to_owned()));
        let Place::Granted((_, [first, last], _)) = verbs.enqueue(waiter).await.unwrap() else {
            panic!("{permit} is kept for it")
        };
        assert!(first > latest, "{first} after {latest}");
        latest = last;
    }
}

#[tokio::test]
async fn other_data_in_the_place_of_a_permit_stay() {
    let server = Server::start();
    let admin = server.admin();
    admin.command::<u64>(&["RPUSH", "disLock:{k}#1", "theirs"]);
    admin.set("disLock:{k}#2", "theirs");
    let (locker, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let guard = permit(&locker).acquire().await.unwrap();
    assert_eq!(guard.lease().key().as_str(), "disLock:{k}#3");
    let next = tokio::spawn(permit(&other).acquire());
    wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
    guard.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert_eq!(next.lease().key().as_str(), "disLock:{k}#3");
    next.release().await.unwrap();
    assert_eq!(admin.get("disLock:{k}#2").as_deref(), Some("theirs"));
    assert_eq!(admin.type_of("disLock:{k}#1"), "list");
}

/// The two others are not disturbed.
#[tokio::test]
async fn a_killed_holder_of_a_permit_costs_that_one_for_its_lease() {
    let server = Server::start();
    let locker = connect_ample(&server.url()).await;
    let mut dying = process(&server.url());
    assert_eq!(dying.ask("permit 3000"), "held");
    let others = [permit(&locker).acquire().await, permit(&locker).acquire().await];
    let waiting = tokio::spawn(permit(&locker).acquire());
    let admin = server.admin();
    wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
    drop(dying.kill());
    let next = wait::ends(waiting).await.unwrap().unwrap();
    assert_eq!(next.lease().key().as_str(), "disLock:{k}#1");
    next.release().await.unwrap();
    for other in others {
        let other = other.unwrap();
        assert!(other.lease().is_held());
        other.release().await.unwrap();
    }
    is_clean(&server).await;
}

/// Also where it has the gate, and its place in the queue, and waits for the last permit.
#[rstest]
#[case::before_the_last_permit(true)]
#[case::with_all_permits(false)]
#[tokio::test]
async fn a_killed_holder_of_all_permits_costs_its_lease(#[case] is_waiting: bool) {
    let server = Server::start();
    let (locker, admin) = (connect_ample(&server.url()).await, server.admin());
    let mut dying = process(&server.url());
    let held = if is_waiting { Some(permit(&locker).acquire().await.unwrap()) } else { None };
    dying.say("permits 2000");
    if is_waiting {
        // Two permits, the gate, and that of this process.
        let are_taken = || admin.keys("disLock:{k}#*").len() == 4;
        let is_queued = || admin.command::<usize>(&["LLEN", QUEUE]) == 1;
        wait::until_async(LIMIT, async || are_taken() && is_queued()).await;
    } else {
        assert_eq!(dying.hear(), "held");
    }
    drop(dying.kill());
    let next = wait::ends(permit(&locker).acquire()).await;
    next.unwrap().release().await.unwrap();
    if let Some(held) = held {
        assert!(held.lease().is_held());
        held.release().await.unwrap();
    }
    let all = locker.lock("k").all_permits(3).wait(LONG);
    let all = wait::ends(all.acquire()).await.unwrap();
    all.release().await.unwrap();
    is_clean(&server).await;
}

/// Goal: a slot between two masters costs no permit for longer than a lease, and gives none of them two holders.
/// Method: of a key with two permits one is held, and waited for. Each trial moves another part of the keys of the slot,
/// and then calls take and release what is left. The servers are asked which locks there are.
#[tokio::test(flavor = "multi_thread")]
async fn permits_live_in_a_slot_that_is_between_two_masters() {
    let cluster = Arc::new(Cluster::builder().shards(2).replicas(0).steady().start());
    let lockers = [connect_ample(&cluster.url()).await, connect_ample(&cluster.url()).await];
    let (mut trials, inside) = (JoinSet::new(), Arc::new(Sections::default()));
    for moved in 0..16 {
        let (cluster, lockers) = (Arc::clone(&cluster), lockers.clone());
        trials.spawn(Trial { moved, cluster, lockers, inside: Arc::clone(&inside) }.run());
    }
    trials.join_all().await;
    inside.assert_sound();
    cluster.wait_until_healthy();
    is_clean_everywhere(&cluster).await;
}

/// One slot.
struct Trial {
    /// Its bits are the keys that are moved.
    moved: u8,
    cluster: Arc<Cluster>,
    lockers: [Locker; 2],
    inside: Arc<Sections>,
}

impl Trial {
    async fn run(self) {
        let [from, to]: [&Server; 2] =
            self.cluster.first_masters().collect::<Vec<_>>().try_into().unwrap();
        let shard = self.cluster.shard_of(from);
        let mut tags = (0..).map(|number: u32| format!("{{{}-{number}}}:k", self.moved));
        let key = tags.find(|tag| shard.has(tag)).unwrap();
        let held = [self.enter(0, &key).await, self.enter(1, &key).await];
        let early = [self.visitor(0, &key), self.visitor(1, &key)];
        wait_until_queued(from, &key);
        let names = self.cluster.begin_move_of(slot(&key), to, self.moved);
        // Two permits, the fence counter and the queue.
        assert_eq!(names.len(), 4, "{names:?}");
        let late = self.visitor(0, &key);
        for guard in &held {
            guard.lease().extend(LONG).await.unwrap();
        }
        let [first, second] = held;
        self.leave(first).await;
        self.cluster.end_move(slot(&key)).unwrap();
        self.leave(second).await;
        for visitor in early.into_iter().chain([late]) {
            visitor.await.unwrap();
        }
    }

    fn visitor(&self, locker: usize, key: &str) -> JoinHandle<()> {
        let (cluster, inside) = (Arc::clone(&self.cluster), Arc::clone(&self.inside));
        let this = Self { cluster, inside, lockers: self.lockers.clone(), ..*self };
        let key = key.to_owned();
        tokio::spawn(async move { this.leave(this.enter(locker, &key).await).await })
    }

    async fn enter(&self, locker: usize, key: &str) -> LockGuard {
        let request = self.lockers[locker].lock(key).permits(2).renew().wait(LONG);
        let guard = request.acquire().await.unwrap();
        self.inside.enter(&guard);
        guard
    }

    async fn leave(&self, guard: LockGuard) {
        self.inside.leave(&guard);
        guard.release().await.unwrap();
    }
}

fn wait_until_queued(master: &Server, key: &str) {
    let (admin, queue) = (master.admin(), format!("lockable:queue:#:disLock:{key}"));
    let are_queued = || admin.command::<usize>(&["LLEN", &queue]) == 2;
    tokio::task::block_in_place(|| wait::until(LIMIT, are_queued));
}

/// A planned failover: what is held stays held, and what is released goes to the waiter.
#[tokio::test]
async fn permits_outlive_a_failover() {
    let group = Sentinels::builder().down_after(LONG).at_usual_periods().start();
    let (locker, other) = (connect_ample(&group.url()).await, connect_ample(&group.url()).await);
    let held = [permit(&locker).acquire().await.unwrap(), permit(&other).acquire().await.unwrap()];
    let last = permit(&locker).acquire().await.unwrap();
    let waiting = tokio::spawn(permit(&other).acquire());
    for replica in group.replicas() {
        let admin = replica.admin();
        wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
    }
    let after = group.fail_over();
    for guard in &held {
        guard.lease().extend(LONG).await.unwrap();
    }
    assert!(locker.lock("k").permits(3).try_acquire().await.unwrap_err().is_busy());
    let (number, token) = (last.lease().key().clone(), last.lease().fencing_token());
    last.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    assert!(*next.lease().key() == number && next.lease().fencing_token() > token);
    next.release().await.unwrap();
    for guard in held {
        guard.release().await.unwrap();
    }
    is_clean(after).await;
}

/// The next call for all permits is in the queue while the first works, and so before those that ask when it is done.
#[tokio::test]
async fn the_gate_is_free_while_all_permits_are_held() {
    let server = Server::start();
    let admin = server.admin();
    let (locker, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let first = locker.lock("k").all_permits(2).acquire().await.unwrap();
    let second = tokio::spawn(other.lock("k").all_permits(2).wait(LONG).acquire());
    let queued = async |count| {
        wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == count).await;
    };
    queued(2).await;
    let third = tokio::spawn(locker.lock("k").permits(2).wait(LONG).acquire());
    queued(3).await;
    first.release().await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert!(!third.is_finished());
    second.release().await.unwrap();
    third.await.unwrap().unwrap().release().await.unwrap();
    is_clean(&server).await;
}

/// Goal: a reader beside a writer, two writers, and a caller that waits while many others have their turn.
/// Method: twelve calls that want one of twelve permits, and two that want all. Each counts the sections of others that
/// begin while it waits; `tests/timings` bounds what a call for all permits waits for.
#[tokio::test]
async fn calls_for_all_permits_alternate_with_the_others() {
    let (server, all) = (Server::start(), long_form(1_500, 10_000));
    let (inside, begun) = (Arc::new(Inside::default()), Arc::new(AtomicUsize::new(0)));
    let mut lockers = Vec::new();
    for _ in 0..3 {
        lockers.push(connect_ample(&server.url()).await);
    }
    let mut calls = JoinSet::new();
    for call in 0..14 {
        let locker = lockers[call % 3].clone();
        let (inside, begun) = (Arc::clone(&inside), Arc::clone(&begun));
        calls.spawn(async move {
            let mut waits = Vec::new();
            while begun.load(Ordering::SeqCst) < all {
                let before = begun.load(Ordering::SeqCst);
                let mut has_begun = || waits.push(begun.fetch_add(1, Ordering::SeqCst) - before);
                let lock = locker.lock("k").wait(LONG);
                if call < 12 {
                    let guard = lock.permits(12).acquire().await.unwrap();
                    has_begun();
                    let lease = guard.lease().clone();
                    inside.enter(call, false, move || lease.is_held());
                    elapse(Duration::from_millis(2)).await;
                    inside.leave(call);
                    guard.release().await.unwrap();
                } else {
                    let guard = lock.all_permits(12).acquire().await.unwrap();
                    has_begun();
                    let leases = guard.leases().clone();
                    inside.enter(call, true, move || leases.is_held());
                    elapse(Duration::from_millis(2)).await;
                    inside.leave(call);
                    guard.release().await.unwrap();
                }
            }
            waits
        });
    }
    let waits = calls.join_all().await;
    let most = waits.iter().flatten().max().unwrap();
    println!("a call waits for up to {most} sections of others");
    assert!(waits.iter().all(|waits| waits.len() > 1), "{waits:?}");
    is_clean(&server).await;
}

/// Who reads and who writes, by the numbers of their calls, and whether they still hold what they have.
#[derive(Default)]
struct Inside(Mutex<HashMap<usize, (bool, IsHeld)>>);

type IsHeld = Box<dyn Fn() -> bool + Send>;

impl Inside {
    /// Any other one that excludes this one must have noticed by now that its lease is over.
    fn enter(&self, call: usize, is_writer: bool, is_held: impl Fn() -> bool + Send + 'static) {
        let mut inside = self.0.lock().unwrap();
        let excludes = |(writes, is_held): &(bool, IsHeld)| (is_writer || *writes) && is_held();
        assert!(!inside.values().any(excludes), "a writer beside another holder");
        inside.insert(call, (is_writer, Box::new(is_held)));
    }

    fn leave(&self, call: usize) {
        self.0.lock().unwrap().remove(&call);
    }
}
