//! A timer that goes off at a moment, also when the machine slept until then.

use std::io;

use crate::clock::{Moment, boot_time};

/// On the clock that counts suspend.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) struct Alarm(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>);

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe; an `OwnedFd` keeps its descriptor"
        )]
        Ok(Self(tokio::io::unix::AsyncFd::new(timer)?))
    }

    /// Waits until that moment.
    ///
    /// # Cancel safety
    /// Nothing is left behind: each call sets the timer again.
    pub(crate) async fn until(&mut self, moment: Moment) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let timespec = |nanos: u64| Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or_default(),
        };
        // Zero would turn the timer off.
        let it_value = timespec(moment.as_nanos().max(1));
        let value = Itimerspec { it_interval: timespec(0), it_value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &value)?;
        while boot_time() < moment {
            self.0.readable().await?.clear_ready();
        }
        Ok(())
    }
}

/// Where there is none on such a clock, a timer that looks at it each second.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) struct Alarm;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Alarm {
    #[expect(clippy::unnecessary_wraps, reason = "it is called as the one that can fail")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits until that moment.
    pub(crate) async fn until(&mut self, moment: Moment) -> io::Result<()> {
        use std::time::Duration;
        use tokio::time::{Instant, sleep_until};
        while boot_time() < moment {
            let rest = moment.since(boot_time()).min(Duration::from_secs(1));
            sleep_until(Instant::now() + rest).await;
        }
        Ok(())
    }
}
