//! A duration as an argument.

use std::str::FromStr;
use std::time::Duration;

use super::duration::{Flaw, from_seconds, from_text, may_be_milliseconds};

/// A duration that was written as `10`, `1500ms` or `1m30s`, as in the attribute and in URLs.
///
/// Beside it is the number, where it has no unit and is hardly meant as seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration, pub(super) Option<u64>);

impl Span {
    /// What to say about a number that was probably meant as milliseconds.
    pub(super) fn doubt(self, name: &str) -> Option<String> {
        let seconds = self.1?;
        let meant = seconds / 1_000;
        Some(format!(
            "{name} {seconds} is {seconds} seconds; write {meant}s where milliseconds were meant, or {seconds}s \
             where seconds are"
        ))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let doubtful = if digits && may_be_milliseconds(text) { text.parse().ok() } else { None };
        let millis = if digits { from_seconds(text) } else { from_text(text) };
        match millis {
            Ok(millis) => Ok(Self(Duration::from_millis(millis), doubtful)),
            Err(Flaw::Form(flaw)) => Err(format!("{flaw}; write it as 10, 1500ms or 1m30s")),
            Err(Flaw::TooLong) => Err("it is too long".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_seconds() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        assert_eq!(span("10"), Ok(10_000));
        assert_eq!(span("1m30s"), Ok(90_000));
        assert_eq!((span("0000"), span("1000")), (Ok(0), Ok(1_000_000)));
        assert!(span("").is_err() && span("5 apples").is_err());
    }
    #[test]
    fn only_a_number_without_a_unit_is_doubted() {
        let doubt = |text: &str| text.parse::<Span>().unwrap().doubt("--wait");
        let expected = "--wait 60000 is 60000 seconds; write 60s where milliseconds were meant, or 60000s where \
                        seconds are";
        assert_eq!(doubt("60000").unwrap(), expected);
        for text in ["60000s", "60000ms", "6001", "300", "000", "0000"] {
            assert_eq!(doubt(text), None, "{text}");
        }
    }
}
