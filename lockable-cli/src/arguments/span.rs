//! A duration as an argument.

use std::str::FromStr;
use std::time::Duration;

use super::duration::{Flaw, from_seconds, from_text};

/// A duration that was written as `10`, `1500ms` or `1m30s`, as in the attribute and in URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let millis = if digits { from_seconds(text) } else { from_text(text) };
        match millis {
            Ok(millis) => Ok(Self(Duration::from_millis(millis))),
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
        assert!(span("").is_err() && span("5 apples").is_err());
    }
}
