//! Ten thousand locks that are held and renewed.

use std::time::Duration;

use lockable_runtime::{Locker, shutdown};
use lockable_tests::wait::HANG;
use lockable_tests::{Admin, Server, wait};

use crate::load::connect;
use crate::{alone, held, hold, in_use};

const COUNT: usize = 10_000;

/// The first renewal is due after a third of it, and comes in time where the machine stalls for seconds.
const LEASE: Duration = Duration::from_secs(12);

/// How many bytes a held lock may take, without its caller's future.
const MEMORY_EACH: usize = 2 * 1024;

/// How many bytes may stay after all were released: buffers of connections, and of the test.
const LEFT: usize = 512 * 1024;

#[test]
fn renewals_are_batched_and_locks_take_two_kibibytes() {
    alone(async {
        let server = Server::start();
        let admin = server.admin();
        let locker = connect(&server.url()).await;
        warm_up(&locker).await;
        let start = in_use();
        let mut guards = hold(&locker, COUNT, |request| request.expire(LEASE).renew()).await;
        let fresh = in_use() - start;
        admin.reset_statistics();
        wait::until_async(HANG, async || renewals(&admin) >= COUNT as u64).await;
        report(&admin);
        let used = in_use() - start;
        println!("{} bytes each at first, {} bytes each later", fresh / COUNT, used / COUNT);
        assert!(used.max(fresh) <= COUNT * MEMORY_EACH, "{used} and {fresh} bytes");
        let (renewed, requests) = (renewals(&admin), admin.command_calls("evalsha"));
        assert!(requests * 100 <= renewed, "{requests} requests for {renewed} renewals");
        assert!(guards.iter().flatten().all(|guard| guard.lease().is_held()));
        assert_eq!(held(&admin), COUNT);
        // Half of them are released, and half are dropped.
        for guard in guards.drain(..guards.len() / 2).flatten() {
            guard.release().await.unwrap();
        }
        drop(guards);
        shutdown(HANG).await.unwrap();
        assert_eq!(held(&admin), 0);
        let left = in_use().saturating_sub(start);
        println!("{left} bytes left");
        assert!(left <= LEFT, "{left} bytes left");
    });
}

/// Makes the allocations that happen once a process.
async fn warm_up(locker: &Locker) {
    let guards = hold(locker, 500, |request| request).await;
    drop(guards);
    shutdown(HANG).await.unwrap();
}

fn renewals(admin: &Admin) -> u64 {
    admin.command_calls("pexpire")
}

/// How long the server took, in its own words.
fn report(admin: &Admin) {
    let statistics = admin.info("commandstats") + &admin.info("latencystats");
    statistics.lines().filter(|line| line.contains("evalsha")).for_each(|line| println!("{line}"));
}
