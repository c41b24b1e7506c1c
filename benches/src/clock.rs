//! The system's clocks.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the monotonic clock, which the processes of a machine share, also Python and Node.
#[must_use]
pub fn monotonic() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Nanoseconds of processor time that all threads of this process have taken, also those that ended.
#[must_use]
pub fn cpu_time() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
