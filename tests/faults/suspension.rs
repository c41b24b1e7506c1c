//! A machine that is suspended: its leases run on at the server.

use std::time::Duration;

use lockable_tests::suspension;

use crate::support::{LIMIT, WORKER};

const DAY: Duration = Duration::from_secs(86_400);

/// Goal: leases are measured by a clock that continues while the machine is suspended.
/// Method: for a process in a namespace of its own, that clock alone is ahead by a day. It prints what the clock of
/// its leases shows, between two processes for which no clock is ahead.
#[test]
fn the_clock_of_leases_counts_suspension() {
    if !suspension::can_be_imitated() {
        return;
    }
    let [before, shown, after] = [Duration::ZERO, DAY, Duration::ZERO].map(shown_after);
    let expected = before + DAY..=after + DAY;
    assert!(expected.contains(&shown), "{shown:?} is not in {expected:?}");
}

/// What the clock of leases shows after that time of suspension.
fn shown_after(suspended: Duration) -> Duration {
    let worker = suspension::after(suspended, WORKER).arg("clock");
    let said = worker.run(LIMIT).unwrap();
    Duration::from_nanos(said.trim_end().parse().unwrap())
}
