//! How a lock key shows where others read it: as it is, or hidden.
//!
//! See "Why is a redacted key a number, and not nothing?" in DESIGN.md.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt;
use std::hash::BuildHasher;

use once_cell::sync::Lazy;

/// A lock key on its way into an event or a message.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    key: &'a str,
    is_hidden: bool,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(key: &'a str, is_hidden: bool) -> Self {
        Self { key, is_hidden }
    }

    /// The key, or what stands for it: made only where somebody reads it.
    pub(crate) fn text(self) -> Cow<'a, str> {
        if self.is_hidden { Cow::Owned(hidden(self.key)) } else { Cow::Borrowed(self.key) }
    }

    /// A text that may name the key, or keys whose names contain it.
    pub(crate) fn within(self, text: &str) -> Cow<'_, str> {
        if self.is_hidden && !self.key.is_empty() && text.contains(self.key) {
            Cow::Owned(text.replace(self.key, &hidden(self.key)))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// What stands for a cause that names the key, where it does and that is hidden.
    pub(crate) fn reworded(self, cause: &impl fmt::Display) -> Option<Reworded> {
        match self.within(&cause.to_string()) {
            Cow::Owned(words) => Some(Reworded(words)),
            Cow::Borrowed(_) => None,
        }
    }
}

/// What a foreign cause says, in words that may be shown.
#[derive(Debug)]
pub(crate) struct Reworded(String);

impl fmt::Display for Reworded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Reworded {}

/// The same for the same key within this process, so that one lock can be followed through a log.
///
/// A hash without a secret would not do: whoever knows what keys look like tries them all.
fn hidden(key: &str) -> String {
    static SECRET: Lazy<RandomState> = Lazy::new(RandomState::new);
    format!("hidden:{:016x}", SECRET.hash_one(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_key_is_told_from_others_and_shows_nothing_of_itself() {
        let text = |key| Shown::new(key, true).text().into_owned();
        assert_eq!(text("mail:a@b.example"), text("mail:a@b.example"));
        assert_ne!(text("mail:a@b.example"), text("mail:c@b.example"));
        assert!(!text("mail:a@b.example").contains("mail"));
        assert_eq!(Shown::new("k", false).text(), "k");
    }

    #[test]
    fn a_hidden_key_is_hidden_inside_of_other_names() {
        let hidden = Shown::new("mail:a", true);
        let text = hidden.within("the fence `lockable:fence:{mail:a}` holds other data");
        assert_eq!(
            text,
            format!("the fence `lockable:fence:{{{}}}` holds other data", hidden.text())
        );
        assert_eq!(Shown::new("mail:a", false).within("mail:a is taken"), "mail:a is taken");
        assert_eq!(Shown::new("", true).within("no answer"), "no answer");
        assert!(hidden.reworded(&"no answer").is_none());
        let cause = hidden.reworded(&"mail:a is taken").unwrap();
        assert!(!format!("{cause} {cause:?}").contains("mail:a"));
    }
}
