//! Why an operator stops a holder, as it is sent and shown.

use std::fmt;
use std::sync::Arc;

use crate::core::text::escape::is_shown;
use crate::core::types::redact::DisplayKey;

/// One line that an operator wrote, without control characters and of a limited length; it may be empty.
///
/// It arrives from outside, and is shown on terminals and in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason(Arc<str>);

const MAX_CHARS: usize = 200;

const ELLIPSIS: char = '…';

impl Reason {
    /// The text in one line. The text of a reason gives the same reason again.
    pub(crate) fn new(text: &str) -> Self {
        let mut line = String::new();
        let mut rest = MAX_CHARS;
        for c in text.trim().chars() {
            let escaped: String = if is_shown(c) { c.into() } else { c.escape_default().collect() };
            let count = escaped.chars().count();
            if count >= rest {
                line.push(ELLIPSIS);
                break;
            }
            rest -= count;
            line.push_str(&escaped);
        }
        Self(line.into())
    }

    pub(crate) fn shown(&self, key: DisplayKey<'_>) -> Self {
        Self::new(&key.redact_in_words(&self.0))
    }

    pub(crate) fn after(&self, what: &str) -> String {
        if self.0.is_empty() { what.to_owned() } else { format!("{what}: {self}") }
    }
}

impl AsRef<str> for Reason {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reason_is_one_line_without_escape_sequences() {
        let reason = Reason::new(" a\u{1b}[31m\nb\u{202e}c \n");
        assert_eq!(reason.to_string(), r"a\u{1b}[31m\nb\u{202e}c");
        assert_eq!(reason.after("stopped"), r"stopped: a\u{1b}[31m\nb\u{202e}c");
        assert_eq!(Reason::new(" \n").after("stopped"), "stopped");
    }

    #[test]
    fn a_long_reason_is_cut_behind_a_whole_character() {
        assert_eq!(Reason::new(&"ä".repeat(199)).as_ref(), "ä".repeat(199));
        assert_eq!(Reason::new(&"ä".repeat(900)).as_ref(), format!("{}…", "ä".repeat(199)));
        assert_eq!(Reason::new(&"\0".repeat(900)).as_ref(), format!("{}…", r"\u{0}".repeat(39)));
    }

    proptest! {
        #[test]
        fn a_reason_stays_as_it_is_on_its_way(text in "\\PC{0,300}|.{0,300}") {
            let reason = Reason::new(&text);
            prop_assert!(reason.as_ref().chars().count() <= MAX_CHARS);
            prop_assert!(reason.as_ref().chars().all(is_shown));
            prop_assert_eq!(Reason::new(reason.as_ref()), reason);
        }
    }
}
