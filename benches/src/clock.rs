//! A clock that the processes of one machine share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the system's monotonic clock, which Python and Node read too.
#[must_use]
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
