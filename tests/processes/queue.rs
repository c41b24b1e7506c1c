//! The load of the article on queued locks: two thousand requests, a hundred at a time, by fifty
//! processes, take from a stock of two thousand while more than ten are left.

use lockable_tests::Server;

use crate::{stock, work};

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

/// The lock is as good; the way to it is not. Less of the same load, because it takes both cores as long as it lasts.
#[test]
fn spinning_for_the_same_lock_takes_retries() {
    let spinning = load("spinning", 3);
    assert_eq!((spinning.left, spinning.served, spinning.failures), (1_700, 300, 0));
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

/// Two requests at a time in each of the processes, one after the other.
fn load(kind: &str, requests: usize) -> Load {
    let server = Server::start();
    let admin = server.admin();
    admin.set("stock", "2000");
    let (url, requests) = (server.url(), requests.to_string());
    let arguments = ["queue", &url, "2", &requests, kind];
    let mut load = Load { left: 0, served: 0, retries: 0, failures: 0 };
    for line in work(PROCESSES, &arguments) {
        let counts: Vec<u64> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        load.served += counts[0];
        load.retries += counts[1];
        load.failures += counts[2];
    }
    load.left = stock(&admin);
    load
}
