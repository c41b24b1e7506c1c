//! Thousands of guards that are dropped while the server is away.

use std::time::Duration;

use lockable_runtime::{Locker, shutdown};
use lockable_tests::wait::HANG;
use lockable_tests::{Proxy, Server, wait};

use crate::load::{LONG, connect, now};
use crate::{alone, held, hold, in_use};

const COUNT: usize = 2_000;

/// How many bytes more than its guard a waiting release may take.
const MEMORY_EACH: usize = 512;

#[test]
fn thousands_of_releases_wait_out_an_outage() {
    alone(async {
        let (server, proxy) = start();
        let (admin, locker) = (server.admin(), connect(&proxy.url()).await);
        let guards = hold(&locker, COUNT, |request| request.expire(LONG)).await;
        let start = in_use();
        proxy.turn_away();
        proxy.cut();
        let accepted = proxy.accepted();
        drop(guards);
        let begun = now();
        for deadline in [Duration::from_millis(100), Duration::from_millis(400)] {
            is_not_over_within(deadline, COUNT).await;
        }
        let (mut most, connects) = (0, || proxy.accepted() - accepted);
        wait::until_async(HANG, async || {
            most = most.max(in_use().saturating_sub(start));
            begun.elapsed() > Duration::from_millis(1_500) && connects() >= 4
        })
        .await;
        println!("{} connections tried, {most} bytes more at most", connects());
        // Each release pauses for up to a second, and those that try together connect together.
        let a_second =
            f64::from(u32::try_from(connects()).unwrap()) / begun.elapsed().as_secs_f64();
        assert!(a_second < 400.0, "{a_second}");
        assert!(most <= COUNT * MEMORY_EACH, "{most} bytes");
        assert_eq!(held(&admin), COUNT);
        proxy.accept();
        shutdown(HANG).await.unwrap();
        assert_eq!(held(&admin), 0);
    });
}

#[test]
fn releases_end_with_their_leases_during_an_outage() {
    alone(async {
        let (_server, proxy) = start();
        let locker = Locker::connect(&proxy.url()).await.unwrap();
        let guards = hold(&locker, 50, |request| request.expire(Duration::from_secs(3))).await;
        proxy.refuse();
        proxy.cut();
        drop(guards);
        is_not_over_within(Duration::from_millis(100), 50).await;
        // The releaser gives up at the end of the lease and one command deadline.
        shutdown(HANG).await.unwrap();
    });
}

/// Goal: one release that is deferred twice is counted once.
/// Method: a release is not answered, and its guard defers it; meanwhile nothing else is open.
#[test]
fn a_release_in_flight_twice_is_counted_once() {
    alone(async {
        let (_server, proxy) = start();
        let guard = connect(&proxy.url()).await.lock("twice").acquire().await.unwrap();
        proxy.turn_away();
        proxy.hold_open_requests();
        drop(tokio::time::timeout(Duration::from_millis(50), guard.release()).await);
        let error = shutdown(Duration::from_millis(100)).await.unwrap_err();
        assert!(
            error.to_string().contains("1 lock was not released within 100ms (`disLock:twice`)"),
            "{error}"
        );
        proxy.cut();
        proxy.accept();
        shutdown(HANG).await.unwrap();
    });
}

async fn is_not_over_within(deadline: Duration, count: usize) {
    let begun = now();
    let error = shutdown(deadline).await.unwrap_err();
    assert!(begun.elapsed() >= deadline);
    assert!(error.is_unavailable(), "{error}");
    let message = error.to_string();
    assert!(
        message.contains(&format!(
            "{count} locks were not released within {deadline:?} (`disLock:crowd:"
        )),
        "{message}"
    );
    assert_eq!(message.matches("`disLock:crowd:").count(), 8, "{message}");
    assert!(message.contains(" and others)"), "{message}");
}

fn start() -> (Server, Proxy) {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    (server, proxy)
}
