//! What the tests here share.

use std::time::{Duration, Instant};

use lockable_runtime::{Locker, LockerBuilder};
use lockable_tests::wait::HANG;
use lockable_tests::{Admin, Server, wait};

/// How long a test waits for an event that must come.
pub(crate) const LIMIT: Duration = HANG;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A lease that no test outlives: its first renewal is due after minutes, long behind every limit.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A locker whose leases and deadlines no test outlives. On a machine that stalls, it asks nothing twice.
pub(crate) fn builder(url: &str) -> LockerBuilder {
    Locker::builder().url(url).expire(LONG).command_deadline(LONG).connect_deadline(LONG)
}

pub(crate) async fn connect(url: &str) -> Locker {
    builder(url).connect().await.unwrap()
}

/// A server of the test's own, a locker on it, and a look into it.
pub(crate) async fn start() -> (Server, Locker, Admin) {
    let server = Server::start();
    let (locker, admin) = (connect(&server.url()).await, server.admin());
    (server, locker, admin)
}

/// Waits until the condition holds, which it must in the end.
#[track_caller]
pub(crate) fn until(condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    wait::until_async(LIMIT, condition)
}

/// A number of the server's `INFO stats`.
pub(crate) fn statistic(admin: &Admin, name: &str) -> u64 {
    let stats = admin.info("stats");
    let number = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    number.unwrap().parse().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "servers and processes run in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
