//! Points in time that two processes of one machine agree on.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine booted, suspend included.
///
/// Leases run on while a machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(CLOCK);
        let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
        Self(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// How long ago that was, as seen from here.
    pub(crate) fn since(self, then: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(then.0))
    }

    /// How long it is until then; zero when that is past.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn until(self, then: Self) -> Duration {
        Duration::from_nanos(then.0.saturating_sub(self.0))
    }
}

/// Waits for that long.
#[expect(clippy::disallowed_methods, reason = "between two looks no event is waited for")]
pub(crate) async fn pause(duration: Duration) {
    tokio::time::sleep(duration).await;
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;

/// Elsewhere this one counts suspend, or there is none that does.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;
