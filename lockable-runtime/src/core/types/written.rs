//! A duration as it is written in a URL or on a command line: as in the attribute, or as a number of seconds.

use std::time::Duration;

use super::error::{LockError, LockErrorKind};
use crate::core::text::duration::{Flaw, from_seconds, from_text, may_be_milliseconds};

/// Reads a duration as it is written in a URL, such as `10`, `1500ms` or `1m30s`; a number without a unit is seconds.
///
/// It is for settings that a program reads when it starts, and that become an option of a call.
///
/// # Errors
/// [`InvalidOption`](LockErrorKind::InvalidOption) when the text is no duration; the error says how to write one.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use lockable_runtime::parse_duration;
///
/// assert_eq!(parse_duration("10").unwrap(), Duration::from_secs(10));
/// assert_eq!(parse_duration("1m30s").unwrap(), Duration::from_secs(90));
/// assert!(parse_duration("5 apples").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, LockError> {
    let written = Written::parse(text).map(|written| written.duration);
    written.map_err(|flaw| LockError::new(LockErrorKind::InvalidOption, flaw))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) duration: Duration,
    /// The number, if it has no unit and was probably meant as milliseconds.
    pub(crate) doubtful: Option<u64>,
}

impl Written {
    /// # Errors
    /// When the text is no duration; the error says why, and how to write one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let doubtful =
            if is_number && may_be_milliseconds(text) { text.parse().ok() } else { None };
        let millis = if is_number { from_seconds(text) } else { from_text(text) };
        match millis {
            Ok(millis) => Ok(Self { duration: Duration::from_millis(millis), doubtful }),
            Err(Flaw::Form(flaw)) => Err(format!("{flaw}; write it as 10, 1500ms or 1m30s")),
            Err(Flaw::TooLong) => Err("it is too long".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_without_a_unit_is_seconds() {
        let millis = |text| Written::parse(text).map(|written| written.duration.as_millis());
        assert_eq!(millis("10"), Ok(10_000));
        assert_eq!(millis("1m30s"), Ok(90_000));
        assert_eq!((millis("0000"), millis("1000")), (Ok(0), Ok(1_000_000)));
        assert!(millis("").is_err() && millis("5 apples").is_err());
    }

    #[test]
    fn only_a_number_without_a_unit_is_doubtful() {
        let doubtful = |text| Written::parse(text).unwrap().doubtful;
        assert_eq!(doubtful("60000"), Some(60_000));
        for text in ["60000s", "60000ms", "6001", "300", "000", "0000"] {
            assert_eq!(doubtful(text), None, "{text}");
        }
    }
    proptest! {
        #[test]
        fn any_text_is_a_duration_or_refused(text in "([0-9]{0,21} ?(d|h|m|s|ms|x)?){0,4}|.{0,20}") {
            if let Ok(written) = Written::parse(&text) {
                let millis = format!("{}ms", written.duration.as_millis());
                prop_assert_eq!(Written::parse(&millis).unwrap().duration, written.duration);
            }
        }
    }
}
