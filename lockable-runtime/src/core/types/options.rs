//! The numbers of a lock: newtypes that cannot hold nonsense, and defaults with their reasons.

use std::borrow::Cow;
use std::time::Duration;

use crate::core::labels::label::Label;
use crate::core::request_id::RequestId;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::permit::Permits;

/// Redis keeps the end of a life in 63 bits of milliseconds since 1970; half of that is left for the time since then.
const LONGEST: u64 = i64::MAX.unsigned_abs() / 2;

/// The shortest life of a fence counter, ten minutes in milliseconds; longer ones are a multiple of it.
pub(crate) const FENCE_LIFE: u64 = 600_000;

/// How long a lease lives in the backend, in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ttl(u64);

impl Ttl {
    /// Longer than most request handlers run, short enough to wait out when a process dies.
    pub(crate) const DEFAULT: Self = Self(10_000);

    /// Under ten milliseconds the drift allowance and one round trip would use up the lease.
    pub(crate) const MIN: Self = Self(10);

    pub(crate) const MAX: Self = Self(LONGEST);

    pub(crate) fn new(option: &str, duration: Duration) -> Result<Self, LockError> {
        let millis = duration.as_millis();
        if millis < u128::from(Self::MIN.0) {
            return Err(invalid(format!("`{option}` must be at least 10ms, got {duration:?}")));
        }
        match u64::try_from(millis) {
            Ok(millis) if millis <= LONGEST => Ok(Self(millis)),
            _ => Err(invalid(format!("`{option}` is longer than Redis can hold"))),
        }
    }

    pub(crate) fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// How long a lock is reserved for a waiter, which may have gone.
    pub(crate) fn reservation(self) -> Self {
        Self(self.0.min(1_000))
    }

    /// How long the holder may rely on the lease, from the sending of its request.
    ///
    /// Less one per cent for clocks that run at different rates, and two milliseconds for Redis' granularity of expiry,
    /// as Redlock allows. So the holder gives up before the server does.
    ///
    /// See "When does a lease end, and why before its TTL?" in DESIGN.md.
    pub(crate) fn usable(self) -> Duration {
        let micros = self.0.saturating_mul(1_000);
        Duration::from_micros(micros.saturating_sub(micros / 100).saturating_sub(2_000))
    }

    /// The shortest TTL of which this much is usable; `None` if it is hardly worth a request.
    pub(crate) fn with_usable(rest: Duration) -> Option<Self> {
        let micros = u64::try_from(rest.as_micros()).ok()?.checked_add(2_000)?;
        let millis = micros.saturating_mul(100).div_ceil(99).div_ceil(1_000);
        (Self::MIN.0..=LONGEST).contains(&millis).then_some(Self(millis))
    }

    /// How long a fence counter is kept that is seeded for such a lease: at least ten times as long.
    ///
    /// A lost fence counter starts again from the time, which is later by then. One that is ahead of the time, because
    /// a clock was set back, is kept for that much longer.
    pub(crate) fn fence_life(self) -> Duration {
        let lives = self.0.saturating_mul(10).div_ceil(FENCE_LIFE);
        Duration::from_millis(lives.saturating_mul(FENCE_LIFE).min(LONGEST))
    }

    /// How long a queue is kept after a waiter last joined it, or queried again.
    pub(crate) fn queue_life(self) -> Duration {
        Duration::from_millis(self.0.saturating_mul(3).clamp(30_000, LONGEST))
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> LockError {
    LockError::of_flaw(LockErrorKind::InvalidOption, message)
}

/// The options of a request, besides its key. An expanded function sets the public ones.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    pub(crate) ttl: Ttl,
    /// Whether the lease is renewed while the lock is held.
    pub renew: bool,
    /// The longest that a renewed lock is held, from its grant.
    pub max_hold: Option<Duration>,
    /// The shortest that the lock is taken, from its grant, however soon it is released.
    pub min_hold: Option<Duration>,
    pub(crate) begin: Begin,
    /// For how long no other call runs once this one has ended well.
    pub once: Option<Once>,
    /// What happens to the body when the lock is lost.
    pub on_lost: OnLost,
    /// How long the call waits.
    pub wait: Wait,
    /// Whether the lock passes to another process after each holder.
    pub fair: bool,
    /// How many holders the key has at a time.
    pub permits: Permits,
    pub(crate) identity: Option<RequestId>,
    pub(crate) is_campaign: bool,
    pub(crate) caller_blocks: bool,
    pub(crate) label: &'static Label,
}

/// From when on the limits of a hold count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Begin {
    #[default]
    AtGrant,
    /// When the call has all of its locks; until then this one is renewed, and its hold has no limits.
    WithTheLast,
}

/// When the period of `once` ends, from the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Once {
    /// For this long.
    For(Duration),
    /// As long as its guard says in the end.
    ByHand,
}

/// How long a call waits for a lock that another holder has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// It tries once.
    Never,
    /// From its start.
    AtMost(Duration),
    /// Without a limit.
    #[default]
    Forever,
}

impl Wait {
    pub(crate) fn limit(self) -> Option<Duration> {
        match self {
            Self::AtMost(limit) => Some(limit),
            Self::Never | Self::Forever => None,
        }
    }

    pub(crate) fn can_wait(self) -> bool {
        self == Self::Forever || self.limit().is_some_and(|limit| !limit.is_zero())
    }
}

impl Options {
    /// Sets the options to those of a call that does not wait.
    ///
    /// # Errors
    /// When they say how the call waits.
    pub(crate) fn try_once(&mut self) -> Result<(), LockError> {
        self.never_wait("write `acquire` or `run`, or")
    }

    /// As [`try_once`](Self::try_once), for a ticket.
    pub(crate) fn redeem(&mut self) -> Result<(), LockError> {
        self.never_wait("a ticket has its lock already, so")
    }

    fn never_wait(&mut self, instead: &str) -> Result<(), LockError> {
        let option = match self.wait {
            Wait::AtMost(_) => "wait",
            Wait::Never | Wait::Forever if self.fair => "fair",
            Wait::Never | Wait::Forever => {
                self.wait = Wait::Never;
                return Ok(());
            }
        };
        Err(invalid(format!("`{option}` is for calls that wait; {instead} leave `{option}` out")))
    }

    /// Sets the options to those of a campaign.
    ///
    /// # Errors
    /// When they limit that, or let several lead.
    pub(crate) fn lead(&mut self) -> Result<(), LockError> {
        let unfit = [
            ("wait", self.wait != Wait::Forever),
            ("once", self.once.is_some()),
            ("on_lost", self.on_lost != OnLost::Cancel),
            ("permits", self.permits != Permits::OneLock),
        ];
        if let Some((option, _)) = unfit.into_iter().find(|(_, is_set)| *is_set) {
            return Err(invalid(format!(
                "`lead` keeps one leader at work, until its future is dropped; leave `{option}` out"
            )));
        }
        self.renew = true;
        self.is_campaign = true;
        Ok(())
    }

    /// # Errors
    /// When the options contradict each other.
    pub(crate) fn check(&self) -> Result<(), LockError> {
        let expire = self.ttl.duration();
        match (self.max_hold, self.min_hold) {
            (Some(Duration::ZERO), _) => Err(invalid("`max_hold` must be longer than zero")),
            (Some(_), _) if !self.renew => Err(invalid(
                "`max_hold` needs `renew`: without it the lease ends after `expire` anyway",
            )),
            (_, Some(least)) if least > expire => Err(invalid(format!(
                "`min_hold` is at most `expire`, got {least:?} and {expire:?}"
            ))),
            (_, Some(_)) if self.once.is_some() => Err(invalid(
                "`min_hold` keeps a lock after every end, and `once` after a good one; leave one of \
                 the two out",
            )),
            _ if self.permits != Permits::OneLock && (self.fair || self.once.is_some()) => {
                let option = if self.fair { "fair" } else { "once" };
                Err(invalid(format!("`{option}` is not for permits; leave one of the two out")))
            }
            _ => self.check_once().and_then(|()| self.permits.count().map(drop)),
        }
    }

    fn check_once(&self) -> Result<(), LockError> {
        match self.once {
            Some(Once::For(period)) => Ttl::new("once", period).map(|_| ()),
            Some(Once::ByHand) | None => Ok(()),
        }
    }
}

/// What happens to a body whose lock is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnLost {
    /// Stops the body: it is not polled again and is dropped, and the call returns an error.
    ///
    /// The default, because the next holder may be at work already.
    #[default]
    Cancel,
    /// Lets the body run to its end, and returns its value; an error event says that it completed without its lock.
    ///
    /// Use it for work that must not be left half done and that its [fencing token](crate::FencingToken), or its
    /// nature, makes harmless.
    Finish,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    pub(crate) command: Duration,
    /// Opening a connection, logging in included.
    pub(crate) connect: Duration,
}

impl Default for Deadlines {
    /// One second is far above any healthy answer and below what a user waits for; a connection takes several round
    /// trips and a name look-up, so it gets two.
    fn default() -> Self {
        Self { command: Duration::from_secs(1), connect: Duration::from_secs(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl(millis: u64) -> Ttl {
        Ttl::new("expire", Duration::from_millis(millis)).unwrap()
    }

    #[test]
    fn a_lease_has_at_least_ten_milliseconds() {
        assert!(
            Ttl::new("expire", Duration::from_micros(9_999)).unwrap_err().kind()
                == LockErrorKind::InvalidOption
        );
        assert_eq!(ttl(10).duration(), Duration::from_millis(10));
    }

    #[test]
    fn as_much_is_usable_as_was_asked_for() {
        for millis in [8, 100, 9_898, 123_456_789] {
            let rest = Duration::from_millis(millis);
            let ttl = Ttl::with_usable(rest).unwrap();
            assert!(ttl.usable() >= rest && Ttl(ttl.0 - 1).usable() < rest, "{millis}");
        }
        assert_eq!(Ttl::with_usable(Duration::from_millis(6)), None);
        assert_eq!(Ttl::with_usable(Duration::MAX), None);
    }

    #[test]
    fn a_lease_fits_what_redis_can_hold() {
        assert!(
            Ttl::new("expire", Duration::MAX).unwrap_err().kind() == LockErrorKind::InvalidOption
        );
        assert!(
            Ttl::new("expire", Duration::from_millis(LONGEST + 1)).unwrap_err().kind()
                == LockErrorKind::InvalidOption
        );
        let longest = ttl(LONGEST);
        for derived in [longest.fence_life(), longest.queue_life()] {
            assert_eq!(derived.as_millis(), u128::from(LONGEST));
        }
    }

    #[test]
    fn the_holder_counts_on_a_little_less() {
        assert_eq!(ttl(10_000).usable(), Duration::from_millis(9_898));
        assert_eq!(ttl(10).usable(), Duration::from_micros(7_900));
        assert_eq!(ttl(150).usable(), Duration::from_micros(146_500));
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let second = Some(Duration::from_secs(1));
        let refused = |options: Options| options.check().unwrap_err().to_string();
        let options = || Options { ttl: ttl(500), ..Options::default() };
        assert!(refused(Options { max_hold: second, ..options() }).contains("needs `renew`"));
        let zero = Some(Duration::ZERO);
        assert!(
            refused(Options { max_hold: zero, renew: true, ..options() }).contains("than zero")
        );
        assert!(refused(Options { min_hold: second, ..options() }).contains("at most `expire`"));
        let once = Some(Once::ByHand);
        let both = Options { min_hold: Some(Duration::ZERO), once, ..options() };
        assert!(refused(both).contains("leave one of the two out"));
        for period in [Duration::ZERO, Duration::MAX] {
            assert!(
                refused(Options { once: Some(Once::For(period)), ..options() }).contains("`once`")
            );
        }
        assert!(Options { once, ..options() }.check().is_ok());
        assert!(Options { max_hold: second, renew: true, ..options() }.check().is_ok());
        assert!(Options { min_hold: Some(ttl(500).duration()), ..options() }.check().is_ok());
    }

    #[test]
    fn one_try_has_no_options_of_waiting() {
        let refused = |mut options: Options| options.try_once().unwrap_err();
        let options = || Options { ttl: ttl(500), ..Options::default() };
        for error in [
            refused(Options { wait: Wait::AtMost(Duration::ZERO), ..options() }),
            refused(Options { fair: true, ..options() }),
        ] {
            assert!(error.kind() == LockErrorKind::InvalidOption);
            assert!(error.to_string().contains("write `acquire` or `run`"), "{error}");
        }
        assert!(options().try_once().is_ok());
    }

    #[test]
    fn a_leader_has_no_terms_that_end_its_campaigns_or_let_others_lead() {
        let refused = |mut options: Options| options.lead().unwrap_err().to_string();
        let options = Options::default;
        for (error, option) in [
            (refused(Options { wait: Wait::AtMost(Duration::MAX), ..options() }), "wait"),
            (refused(Options { once: Some(Once::ByHand), ..options() }), "once"),
            (refused(Options { on_lost: OnLost::Finish, ..options() }), "on_lost"),
            (refused(Options { permits: Permits::OneOf(2), ..options() }), "permits"),
        ] {
            assert!(error.contains(&format!("leave `{option}` out")), "{error}");
        }
        assert!(options().lead().is_ok());
    }

    #[test]
    fn the_fence_outlives_the_lease_tenfold() {
        assert_eq!(ttl(10_000).fence_life(), Duration::from_secs(600));
        assert_eq!(ttl(120_000).fence_life(), Duration::from_secs(1_200));
        assert_eq!(ttl(60_001).fence_life(), Duration::from_secs(1_200));
    }
}
