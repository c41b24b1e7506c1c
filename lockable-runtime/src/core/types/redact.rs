//! How a lock key is displayed where others read it: as it is, or redacted.
//!
//! See "Why does `redact_keys` show a keyed hash, and why do server messages lose quotations?" in DESIGN.md.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::error::Error;
use std::fmt::Display;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use crate::core::labels::label::Label;

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

    /// The key, or its pseudonym: made only when it is read.
    pub(crate) fn text(self) -> Cow<'a, str> {
        if self.is_redacted { Cow::Owned(pseudonym(self.key)) } else { Cow::Borrowed(self.key) }
    }

    /// Redacts the key, and companion keys that contain it.
    pub(crate) fn redact_in(self, text: &str) -> Cow<'_, str> {
        if self.is_redacted && !self.key.is_empty() && text.contains(self.key) {
            Cow::Owned(text.replace(self.key, &pseudonym(self.key)))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Redacts the words of a person, who may leave out the prefix, braces, number of a permit, or a part of the key.
    pub(crate) fn redact_in_words(self, words: &str) -> Cow<'_, str> {
        let mut shown = self.redact_in(words);
        if self.is_redacted {
            let whole = self.key.replace(['{', '}'], "");
            let up_to_tag = self.key.split_once('}').map_or("", |(tag, _)| tag).replace('{', "");
            for name in [self.key, &whole, &up_to_tag] {
                let ends = name.char_indices().map(|(at, _)| name.split_at(at).1);
                for end in ends.filter(|end| end.chars().nth(1).is_some()) {
                    shown = Cow::Owned(without_word(&shown, end, &pseudonym(self.key)));
                }
            }
        }
        shown
    }

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

/// Replaces `word` where it has no letter or digit beside it.
fn without_word(text: &str, word: &str, other: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, found) = rest.split_at(at);
        let behind = found.split_at(word.len()).1;
        let is_alone =
            !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric);
        shown.push_str(before);
        shown.push_str(if is_alone { other } else { word });
        rest = behind;
    }
    shown + rest
}

/// A text that is equal for equal keys within this process, so that one lock can be followed through a log.
///
/// A hash without a secret would not do: a reader who knows the form of the keys could try them all.
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
    fn words_may_name_a_part_of_the_key() {
        let key = DisplayKey::new("disLock:mail:ada@x", true);
        let shown =
            |words| key.redact_in_words(words).replace(&pseudonym("disLock:mail:ada@x"), "#");
        assert_eq!(shown("disLock:mail:ada@x hangs"), "# hangs");
        assert_eq!(shown("`mail:ada@x` and ada@x hang"), "`#` and # hang");
        assert_eq!(shown("ada@xy hangs, x-ray too"), "ada@xy hangs, x-ray too");
        let permit = DisplayKey::new("disLock:{mail:ada}:7#1", true);
        for words in ["mail:ada hangs", "{mail:ada}:7#1 hangs", "ada:7#1 hangs", "ada hangs"] {
            let shown = permit.redact_in_words(words);
            assert!(shown.starts_with("redacted:") && !shown.contains("ada"), "{shown}");
        }
        assert_eq!(DisplayKey::new("mail:a", false).redact_in_words("mail:a"), "mail:a");
    }

    #[test]
    fn a_cause_is_replaced_only_for_its_key() {
        let key = DisplayKey::new("mail:a", true);
        assert!(key.redact_cause(&"no answer").is_none());
        let cause = key.redact_cause(&"mail:a is taken").unwrap();
        assert!(!format!("{cause} {cause:?}").contains("mail:a"));
    }
}
