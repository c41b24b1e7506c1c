//! The load of the article on queued locks: two thousand requests, a hundred at a time, by fifty
//! processes, take from a stock of two thousand while more than ten are left.

use std::iter::repeat_with;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lockable_tests::{Peer, Server};

#[test]
fn two_thousand_queued_requests_leave_exactly_ten() {
    let queued = load("queued", 20);
    assert_eq!((queued.left, queued.served, queued.failures), (10, 2_000, 0));
    assert_eq!(queued.retries, 0);
}

#[test]
fn a_thousand_queued_requests_leave_a_thousand() {
    let queued = load("queued", 10);
    assert_eq!((queued.left, queued.served, queued.failures), (1_000, 1_000, 0));
}

/// The lock is as good; the way to it is not.
#[test]
fn spinning_for_the_same_lock_takes_retries() {
    let spinning = load("spinning", 20);
    assert_eq!(spinning.left, 2_000 - spinning.served.min(1_990));
    assert_eq!(spinning.served + spinning.failures, 2_000);
    assert!(spinning.retries > 0);
}

#[derive(Debug)]
struct Load {
    left: u64,
    served: u64,
    retries: u64,
    failures: u64,
}

const PROCESSES: usize = 50;

/// Two requests at a time in each of the processes, one after the other; one load at a time,
/// because the spinning one would leave the queued ones little of the processor.
fn load(kind: &str, requests: usize) -> Load {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start();
    let admin = server.admin();
    admin.set("stock", "2000");
    let arguments = [server.url(), "2".to_owned(), requests.to_string(), kind.to_owned()];
    let worker = || Peer::start(env!("CARGO_BIN_EXE_queue_worker"), &arguments);
    let mut workers: Vec<Peer> = repeat_with(worker).take(PROCESSES).collect();
    for worker in &workers {
        assert_eq!(worker.hear(), "ready");
    }
    let start = now();
    for worker in &mut workers {
        worker.say("go");
    }
    let mut load = Load { left: 0, served: 0, retries: 0, failures: 0 };
    for worker in workers {
        let line = worker.hear();
        let counts: Vec<u64> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        load.served += counts[0];
        load.retries += counts[1];
        load.failures += counts[2];
        worker.finish();
    }
    load.left = admin.get("stock").unwrap().parse().unwrap();
    println!("{kind}: {load:?} in {:.2?}", took(start));
    load
}

#[expect(clippy::disallowed_methods, reason = "printed, not tested")]
fn now() -> Instant {
    Instant::now()
}

fn took(start: Instant) -> Duration {
    start.elapsed()
}
