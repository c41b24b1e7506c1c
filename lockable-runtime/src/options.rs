//! The numbers of a lock: newtypes that cannot hold nonsense, and defaults with their reasons.

use std::time::Duration;

use crate::error::{LockError, LockErrorKind};

/// Redis keeps the end of a life in 63 bits of milliseconds since 1970; half of that is left for
/// the time that has gone by.
const LONGEST: u64 = i64::MAX.unsigned_abs() / 2;

/// How long a lease lives in the backend, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ttl(u64);

impl Ttl {
    /// Ten seconds, as in the annotation this crate mirrors: longer than most request handlers
    /// run, short enough to wait out when a process dies.
    pub(crate) const DEFAULT: Self = Self(10_000);

    /// Under ten milliseconds the drift allowance and one round trip would eat the lease.
    pub(crate) const MIN: Self = Self(10);

    pub(crate) fn new(expire: Duration) -> Result<Self, LockError> {
        let invalid = |message| LockError::new(LockErrorKind::InvalidOption, message);
        let millis = expire.as_millis();
        if millis < u128::from(Self::MIN.0) {
            return Err(invalid(format!("`expire` must be at least 10ms, got {expire:?}")));
        }
        match u64::try_from(millis) {
            Ok(millis) if millis <= LONGEST => Ok(Self(millis)),
            _ => Err(invalid("`expire` is longer than Redis can hold".to_owned())),
        }
    }

    pub(crate) fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// How long the holder itself may count on the lease, from the moment it asked for it.
    ///
    /// One per cent for clocks that run at different rates and two milliseconds for Redis' own
    /// granularity of expiry, the allowance of the Redlock description. So the holder gives up
    /// before the server does.
    pub(crate) fn usable(self) -> Duration {
        let micros = self.0.saturating_mul(1_000);
        Duration::from_micros(micros.saturating_sub(micros / 100).saturating_sub(2_000))
    }

    /// How long the fencing floor of the key is kept.
    ///
    /// A floor that is gone starts again from the time, which has gone on since; ten minutes are
    /// more than clocks that are looked after ever differ by.
    pub(crate) fn floor_life(self) -> Duration {
        Duration::from_millis(self.0.saturating_mul(10).clamp(600_000, LONGEST))
    }
}

/// How long the parts of a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// One command, from its sending to its answer.
    pub(crate) command: Duration,
    /// Opening a connection, logging in included.
    pub(crate) connect: Duration,
}

impl Default for Deadlines {
    /// One second is far above any healthy answer and below what a user waits for; a connection
    /// takes several round trips and a name look-up, so it gets two.
    fn default() -> Self {
        Self { command: Duration::from_secs(1), connect: Duration::from_secs(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl(millis: u64) -> Ttl {
        Ttl::new(Duration::from_millis(millis)).unwrap()
    }

    #[test]
    fn a_lease_has_at_least_ten_milliseconds() {
        assert!(Ttl::new(Duration::from_micros(9_999)).unwrap_err().is_invalid_option());
        assert_eq!(ttl(10).duration(), Duration::from_millis(10));
    }

    #[test]
    fn a_lease_fits_what_redis_can_hold() {
        assert!(Ttl::new(Duration::MAX).unwrap_err().is_invalid_option());
        assert!(Ttl::new(Duration::from_millis(LONGEST + 1)).unwrap_err().is_invalid_option());
        let longest = ttl(LONGEST);
        assert!(longest.floor_life().as_millis() <= u128::from(LONGEST));
    }

    #[test]
    fn the_holder_counts_on_one_per_cent_and_two_milliseconds_less() {
        assert_eq!(ttl(10_000).usable(), Duration::from_millis(9_898));
        assert_eq!(ttl(10).usable(), Duration::from_micros(7_900));
        assert_eq!(ttl(150).usable(), Duration::from_micros(146_500));
    }

    #[test]
    fn the_floor_outlives_the_lease_tenfold() {
        assert_eq!(ttl(10_000).floor_life(), Duration::from_secs(600));
        assert_eq!(ttl(120_000).floor_life(), Duration::from_secs(1_200));
    }
}
