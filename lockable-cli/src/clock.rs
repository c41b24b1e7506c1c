//! The clock that the program waits by: it counts suspend, as leases do.

use std::time::Duration;

/// A point in time, in nanoseconds since the start of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// How long after `earlier` this moment is; zero when it is not.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// What `lockable run` and tests need beside.
#[cfg(any(unix, test))]
impl Moment {
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
}

#[cfg(unix)]
impl Moment {
    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Time since this machine booted, suspend included: the same in all processes.
#[cfg(unix)]
pub(crate) fn boot_time() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    // Elsewhere this one counts suspend, or there is none that does.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    let time = Duration::try_from(clock_gettime(clock));
    Moment(nanos(time.unwrap_or_default()))
}

/// Time since the first use.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "this is the clock that all others have to use")]
pub(crate) fn boot_time() -> Moment {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Moment(nanos(START.elapsed()))
}
