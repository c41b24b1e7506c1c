//! Calls for several keys that overlap: twelve want two of six accounts, and one wants all. How long they take beside
//! the same locks, taken one by one, is in `tests/timings/shares.rs`.

use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::sections::{is_clean, is_clean_everywhere};
use lockable_tests::wait::HANG;
use lockable_tests::{Cluster, Server, long_form};

use crate::accounts::{How, work};
use crate::alone;
use crate::load::connect;

#[test]
fn overlapping_sets_neither_deadlock_nor_starve() {
    alone(async {
        let server = Server::start();
        all_are_served(&server.url()).await;
        is_clean(&server).await;
    });
}

/// The accounts are in slots of all nodes.
#[test]
fn overlapping_sets_over_the_slots_of_a_cluster() {
    alone(async {
        let cluster = Cluster::start();
        all_are_served(&cluster.url()).await;
        is_clean_everywhere(&cluster).await;
    });
}

/// Each, while the others work on; also beside those that take the same locks one by one.
async fn all_are_served(url: &str) {
    let one_by_one = work(url, How::OneByOne, 2);
    let (sets, one_by_one) = tokio::join!(work(url, How::Set, long_form(5, 100)), one_by_one);
    println!("{sets:?}, one by one {one_by_one:?}");
}

/// What sets do not do: each has what the other one waits for.
#[test]
fn by_hand_in_opposite_orders_two_calls_wait_for_the_end_of_a_lease() {
    const LEASE: Duration = Duration::from_secs(1);
    alone(async {
        let server = Server::start();
        let (one, two) = (connect(&server.url()).await, connect(&server.url()).await);
        let hold = async |locker: &Locker, key: &str| {
            locker.lock(key).expire(LEASE).acquire().await.unwrap()
        };
        let (a, b) = (hold(&one, "a").await, hold(&two, "b").await);
        let first = tokio::select! {
            guard = hold(&one, "b") => guard,
            guard = hold(&two, "a") => guard,
        };
        assert!(!a.lease().is_held() || !b.lease().is_held());
        drop((a, b, first));
        lockable_runtime::shutdown(HANG).await.unwrap();
        is_clean(&server).await;
    });
}
