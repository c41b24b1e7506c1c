//! How a lock key is displayed where others read it: as it is, or redacted.
//!
//! See "Why is a redacted key a number, and not nothing?" in DESIGN.md.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt::Display;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use crate::types::label::Label;

/// A lock key on its way into an event or a message, and the label of its lock.
#[derive(Clone, Copy)]
pub(crate) struct DisplayKey<'a> {
    key: &'a str,
    is_redacted: bool,
    pub(crate) label: &'static Label,
}

impl<'a> DisplayKey<'a> {
    pub(crate) fn new(key: &'a str, is_redacted: bool) -> Self {
        Self { key, is_redacted, label: Default::default() }
    }

    pub(crate) fn labeled(self, label: &'static Label) -> Self {
        Self { label, ..self }
    }

    /// The key, or its pseudonym: made only where it is read.
    pub(crate) fn text(self) -> Cow<'a, str> {
        if self.is_redacted { Cow::Owned(pseudonym(self.key)) } else { Cow::Borrowed(self.key) }
    }

    /// A text that may name the key, or companion keys whose names contain it.
    pub(crate) fn redact_in(self, text: &str) -> Cow<'_, str> {
        if self.is_redacted && !self.key.is_empty() && text.contains(self.key) {
            Cow::Owned(text.replace(self.key, &pseudonym(self.key)))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// What replaces a cause that names the key, if the key is redacted.
    pub(crate) fn redact_cause(
        self,
        cause: &impl Display,
    ) -> Option<Box<dyn Error + Send + Sync + 'static>> {
        match self.redact_in(&cause.to_string()) {
            Cow::Owned(message) => Some(message.into()),
            Cow::Borrowed(_) => None,
        }
    }
}

/// The same for the same key within this process, so that one lock can be followed through a log.
///
/// A hash without a secret would not do: who knows the form of the keys could try them all.
fn pseudonym(key: &str) -> String {
    static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    format!("redacted:{:016x}", SECRET.hash_one(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redacted_key_has_a_pseudonym_of_its_own() {
        let text = |key| DisplayKey::new(key, true).text().into_owned();
        assert_eq!(text("mail:a@b.example"), text("mail:a@b.example"));
        assert_ne!(text("mail:a@b.example"), text("mail:c@b.example"));
        assert!(!text("mail:a@b.example").contains("mail"));
        assert_eq!(DisplayKey::new("k", false).text(), "k");
    }

    #[test]
    fn a_key_is_redacted_inside_of_other_names() {
        let key = DisplayKey::new("mail:a", true);
        let text = key.redact_in("the fence `lockable:fence:{mail:a}` holds other data");
        let name = format!("lockable:fence:{{{}}}", key.text());
        assert_eq!(text, format!("the fence `{name}` holds other data"));
        let displayed = DisplayKey::new("mail:a", false);
        assert_eq!(displayed.redact_in("mail:a is taken"), "mail:a is taken");
        assert_eq!(DisplayKey::new("", true).redact_in("no answer"), "no answer");
    }

    #[test]
    fn a_cause_is_replaced_only_for_its_key() {
        let key = DisplayKey::new("mail:a", true);
        assert!(key.redact_cause(&"no answer").is_none());
        let cause = key.redact_cause(&"mail:a is taken").unwrap();
        assert!(!format!("{cause} {cause:?}").contains("mail:a"));
    }
}
