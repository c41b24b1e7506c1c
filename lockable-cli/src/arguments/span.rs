//! A duration as an argument.

use std::str::FromStr;
use std::time::Duration;

use lockable_runtime::parse_duration;

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
        let duration = parse_duration(text).map_err(|error| error.to_string())?;
        let seconds = text.parse().ok();
        let is_doubtful = |seconds: &u64| *seconds >= 1_000 && seconds.is_multiple_of(1_000);
        Ok(Self(duration, seconds.filter(is_doubtful)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
