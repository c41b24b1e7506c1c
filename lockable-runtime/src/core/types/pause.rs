//! What an operator leaves under a lock that is paused: until when it is taken, and why.
//!
//! See "How does a pause keep a lock taken?" in DESIGN.md.

use std::time::{Duration, SystemTime};

use crate::core::process::utc::utc;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::options::Ttl;
use crate::core::types::owner::{LockValue, Mark, OwnerToken, TokenParts};
use crate::core::types::reason::Reason;
use crate::core::types::redact::DisplayKey;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    /// By the clock of the operator's machine, as text.
    until: Box<str>,
    reason: Reason,
}

impl Pause {
    pub(crate) fn of(value: &LockValue) -> Option<Self> {
        let is_pause = |parts: &TokenParts<'_>| parts.mark == Some(Mark::Paused);
        let parts = TokenParts::parse(value.text()).filter(is_pause)?;
        let said = parts.identity.unwrap_or_default();
        let (until, reason) = said.split_once(' ').unwrap_or((said, ""));
        // It arrives from outside, as the reason does.
        let until = Reason::new(until).as_ref().into();
        Some(Self { until, reason: Reason::new(reason) })
    }

    pub(crate) fn reason(&self) -> &str {
        self.reason.as_ref()
    }

    /// Until when and why the lock is paused, in words that may be shown beside its key.
    pub(crate) fn words(&self, key: DisplayKey<'_>) -> String {
        self.reason.shown(key).after(&format!("the lock is paused until {}", self.until))
    }
}

/// The owner token of a pause that begins now, which no other acquisition has.
///
/// # Errors
/// When the system gives no randomness.
pub(crate) fn token(length: Ttl, reason: &Reason) -> Result<OwnerToken, LockError> {
    let (drawn, end) = (OwnerToken::draw(None)?, SystemTime::now() + length.duration());
    Ok(drawn.of_pause(&utc(end), reason))
}

/// # Errors
/// When no pause may be so long.
pub(crate) fn length(length: Duration) -> Result<Ttl, LockError> {
    if length > LONGEST {
        let message = format!(
            "a pause is at most 24 hours, and not {length:?}; pause it again before its end"
        );
        return Err(LockError::of_flaw(LockErrorKind::InvalidOption, message));
    }
    Ttl::new("pause", length)
}

/// A forgotten pause ends within a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reason: &str) -> String {
        let minute = length(Duration::from_secs(60)).unwrap();
        token(minute, &Reason::new(reason)).unwrap().as_ref().to_owned()
    }

    fn of(value: &str) -> Option<Pause> {
        Pause::of(&LockValue::new(value.as_bytes().to_vec()))
    }

    fn shown(pause: &Pause) -> String {
        pause.words(DisplayKey::new("k", false))
    }

    #[test]
    fn a_pause_says_until_when_and_why() {
        let minute = utc(SystemTime::now() + Duration::from_secs(60));
        let pause = of(&written("deploy 42 – it's on")).unwrap();
        assert_eq!(pause.reason(), "deploy 42 – it's on");
        let (day, words) = (&minute[..10], shown(&pause));
        assert!(words.starts_with("the lock is paused until 2"), "{words}");
        assert!(words.contains(day) && words.ends_with("Z: deploy 42 – it's on"), "{words}");
        let without = shown(&of(&written("")).unwrap());
        assert!(without.ends_with('Z'), "{without}");
    }

    #[test]
    fn a_reason_shows_no_redacted_key() {
        let pause = of(&written("ada@x is repaired")).unwrap();
        let words = pause.words(DisplayKey::new("disLock:{mail:ada@x}#1", true));
        assert!(words.contains("redacted:") && !words.contains("ada"), "{words}");
    }

    #[test]
    fn no_escape_sequence_of_a_pause_is_shown() {
        let value = "|0123456789abcdef.1700000000000000 20\u{1b}[1m26 a\u{1b}[31mb";
        let words = shown(&of(value).unwrap());
        assert_eq!(words, r"the lock is paused until 20\u{1b}[1m26: a\u{1b}[31mb");
    }

    #[test]
    fn a_value_that_is_no_pause_is_none() {
        for value in ["", "|", "|another", "0123456789abcdef.1700000000000000 x", "~|a"] {
            assert_eq!(of(value), None, "{value}");
        }
        assert_eq!(Pause::of(&LockValue::new(b"|\xff".to_vec())), None);
    }

    #[test]
    fn a_long_reason_is_short_enough_for_a_listing() {
        assert!(written(&"\u{10000}".repeat(900)).len() < LockValue::MAX_BYTES);
    }

    #[test]
    fn a_pause_is_at_most_a_day() {
        let day = Duration::from_secs(86_400);
        assert!(length(day).is_ok());
        let error = length(day + Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("at most 24 hours"), "{error}");
        assert!(length(Duration::ZERO).is_err());
    }
}
