//! Points in time that leases are measured by, and the timers that wait for them.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tokio::time::Sleep;

/// A point in time on one backend's clock, in nanoseconds since that clock's own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    pub(crate) const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// How long after `earlier` this moment is; zero when it is not.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The next moment on a grid of equal steps, each a power of two of nanoseconds and at most `step`.
    pub(crate) fn round_up(self, step: Duration) -> Self {
        let bits = nanos(step).max(1).ilog2();
        let rest = self.0 & ((1 << bits) - 1);
        if rest == 0 { self } else { Self(self.0.saturating_add((1 << bits) - rest)) }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Time since this machine booted, suspend included: the same in all processes.
///
/// A lease runs on while a laptop sleeps or a virtual machine is frozen; `Instant` stops meanwhile.
#[cfg(all(feature = "redis", unix))]
pub(crate) fn boot_time() -> Moment {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    // Elsewhere this one counts suspend, or there is none that does.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let seconds = time.tv_sec.unsigned_abs();
    let nanos = time.tv_nsec.unsigned_abs();
    Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

#[cfg(all(feature = "redis", not(unix)))]
pub(crate) fn boot_time() -> Moment {
    use std::time::Instant;
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all others have to use")]
    fn now() -> Instant {
        Instant::now()
    }
    static START: LazyLock<Instant> = LazyLock::new(now);
    Moment(nanos(now().saturating_duration_since(*START)))
}

pub(crate) fn tokio_time() -> Moment {
    use tokio::time::Instant;
    // A day earlier: a paused clock may show a time before the first use of this one.
    static START: LazyLock<Instant> = LazyLock::new(|| {
        let now = Instant::now();
        now.checked_sub(Duration::from_secs(86_400)).unwrap_or(now)
    });
    #[cfg(test)]
    if let Some(start) = crate::core::process::seeded::start() {
        return Moment(nanos(Instant::now().saturating_duration_since(start)));
    }
    Moment(nanos(Instant::now().saturating_duration_since(*START)))
}

/// Moves the paused clock of the calling test. No timer goes off before the runtime's next turn.
#[cfg(test)]
pub(crate) fn skip(duration: Duration) {
    use std::task::Waker;
    // The clock goes forward at the first poll; the second would be such a turn.
    let advance = std::pin::pin!(tokio::time::advance(duration));
    assert!(advance.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// A timer on `runtime`, which may be another than the one that polls it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that makes timers; every use is bounded"
)]
pub(crate) fn timer_on(runtime: &Handle, duration: Duration) -> Sleep {
    let _context = runtime.enter();
    tokio::time::sleep(duration)
}

/// The future's value, or `None` once the timer has gone off first.
///
/// The timer is made only if the future does not finish at its first poll.
pub(crate) fn within<F: Future, M: FnOnce() -> Sleep>(make: M, future: F) -> Within<F, M> {
    Within { future, make: Some(make), timer: None }
}

pin_project! {
    /// No async fn, which would store the future twice.
    #[must_use = "nothing happens before it is awaited"]
    pub(crate) struct Within<F, M> {
        #[pin]
        future: F,
        make: Option<M>,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl<F: Future, M: FnOnce() -> Sleep> Future for Within<F, M> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(value) = this.future.poll(cx) {
            return Poll::Ready(Some(value));
        }
        if let Some(make) = this.make.take() {
            this.timer.set(Some(make()));
        }
        match this.timer.as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        let late = Moment::from_nanos(u64::MAX - 1).after(Duration::MAX);
        assert_eq!(late.as_nanos(), u64::MAX);
        assert_eq!(Moment::from_nanos(1).since(late), Duration::ZERO);
    }

    #[test]
    fn moments_are_rounded_up_to_powers_of_two() {
        let rounded = |nanos, step| Moment::from_nanos(nanos).round_up(Duration::from_nanos(step));
        assert_eq!(rounded(17, 15), Moment::from_nanos(24));
        assert_eq!(rounded(24, 8), Moment::from_nanos(24));
        assert_eq!(rounded(7, 0), Moment::from_nanos(7));
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_time_moves_with_the_paused_clock() {
        let before = tokio_time();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(tokio_time().since(before), Duration::from_secs(5));
    }

    #[cfg(feature = "redis")]
    #[test]
    fn boot_time_does_not_go_back() {
        let before = boot_time();
        assert!(boot_time() >= before);
    }
}
