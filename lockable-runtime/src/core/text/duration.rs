//! Durations as text: `10`, `1500ms`, `1m30s`.
//!
//! The code above the tests is the same in both crates, as a test of `tests/architecture` checks: the macros
//! parse what the attribute has, the runtime what a URL has, and a crate of macros exports no function.

/// The units of a written duration, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is no duration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The form is wrong; the text says how.
    Form(String),
    /// Redis keeps expiries in an `i64` of milliseconds.
    TooLong,
}

/// The milliseconds of a whole number of seconds, as written in digits.
pub(crate) fn from_seconds(digits: &str) -> Result<u64, Flaw> {
    let seconds: u64 = digits.parse().map_err(|_| Flaw::TooLong)?;
    limited(seconds.checked_mul(1_000))
}

/// Whether a whole number of seconds was probably meant as one of milliseconds.
pub(crate) fn may_be_milliseconds(digits: &str) -> bool {
    let digits = digits.trim_start_matches('0');
    digits.len() > 3 && digits.ends_with("000")
}

/// The milliseconds of numbers with units, larger units first.
pub(crate) fn from_text(text: &str) -> Result<u64, Flaw> {
    let mut rest = text.trim();
    let mut units_left = UNITS.as_slice();
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (digits, unit, after) = split_term(rest);
        let place = units_left.iter().position(|(name, _)| *name == unit);
        let Some(&(_, factor)) = place.and_then(|place| units_left.get(place)) else {
            return Err(Flaw::Form(wrong_term(text, digits, unit)));
        };
        units_left = place.and_then(|place| units_left.get(place + 1..)).unwrap_or_default();
        total =
            limited(term(digits, text)?.checked_mul(factor).and_then(|t| total.checked_add(t)))?;
        rest = after;
    }
    if text.trim().is_empty() { Err(Flaw::Form("the text is empty".to_owned())) } else { Ok(total) }
}

fn term(digits: &str, text: &str) -> Result<u64, Flaw> {
    if digits.is_empty() {
        return Err(Flaw::Form(format!("`{text}` does not start with a number")));
    }
    digits.parse().map_err(|_| Flaw::TooLong)
}

/// Splits `"1m 30s"` into `"1"`, `"m"` and `"30s"`.
fn split_term(text: &str) -> (&str, &str, &str) {
    let (digits, rest) = split_while(text, |c| c.is_ascii_digit());
    let (unit, rest) = split_while(rest.trim_start(), |c| !c.is_ascii_digit() && c != ' ');
    (digits, unit, rest.trim_start())
}

fn split_while(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !wanted(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn wrong_term(text: &str, digits: &str, unit: &str) -> String {
    if UNITS.iter().any(|(name, _)| *name == unit) {
        return format!("in `{text}` the unit `{unit}` comes after a smaller or equal one");
    }
    match unit {
        "" => format!("no unit of time after `{digits}`"),
        _ if unit.starts_with('.') || digits.is_empty() => format!("`{text}` is no duration"),
        _ => format!("`{unit}` is no unit of time here"),
    }
}

fn limited(milliseconds: Option<u64>) -> Result<u64, Flaw> {
    milliseconds.filter(|ms| i64::try_from(*ms).is_ok()).ok_or(Flaw::TooLong)
}
