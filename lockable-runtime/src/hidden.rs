//! How a lock key shows where others read it: as it is, or hidden.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use once_cell::sync::Lazy;

/// A lock key on its way into an event or a message.
#[derive(Clone, Copy, Debug)]
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
}

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
}
