//! The names of permits: the numbered locks of one key.
//!
//! See "How are `permits` made of plain locks?" in DESIGN.md.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;

/// The most permits of a key. A request for one carries the names of all.
pub(crate) const MOST: u8 = 64;

/// How many holders a key has at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permits {
    /// One: the lock has the key as its name.
    #[default]
    OneLock,
    /// This number, of which the call is one.
    OneOf(u32),
    /// This number, all of which the call is to have.
    All(u32),
}

impl Permits {
    /// The number; one for a lock.
    ///
    /// # Errors
    /// When a key cannot have this number.
    pub(crate) fn count(self) -> Result<u8, LockError> {
        let (Self::OneOf(count) | Self::All(count)) = self else { return Ok(1) };
        match u8::try_from(count) {
            Ok(count @ 1..=MOST) => Ok(count),
            _ => Err(invalid(format!("`permits` is from 1 to {MOST}, got {count}"))),
        }
    }

    pub(crate) fn are_of(self, key: &LockKey, held: &LockKey) -> bool {
        self != Self::OneLock && PermitsKey(key.clone()).has(held)
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> LockError {
    LockError::of_flaw(LockErrorKind::InvalidOption, message)
}

/// What is in front of the numbers of the permits of a key: the key with a hash tag, so that all are in one slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PermitsKey(LockKey);

impl PermitsKey {
    /// The permits' key of a key that begins with this prefix. A hash tag of its own is kept; otherwise the text behind
    /// the prefix becomes one.
    ///
    /// # Errors
    /// When the names of the permits would be too long, or are those of another key.
    pub(crate) fn of(key: &LockKey, prefix: usize) -> Result<Self, LockError> {
        let (prefix, text) = key.as_str().split_at_checked(prefix).unwrap_or(("", key.as_str()));
        let tag = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        if tag.is_some_and(|tag| !tag.contains('}')) && !prefix.contains('{') {
            let flaw = "with `permits` the key is put into braces, so this one would have the permits of the key without \
                        them; leave its braces out";
            return Err(LockError::invalid_key(key.as_str(), flaw));
        }
        let permits_key = if key.as_str().contains('{') {
            key.clone()
        } else {
            LockKey::prefixed(prefix, &format!("{{{text}}}"))?
        };
        LockKey::prefixed(permits_key.as_str(), "#64").map(|_| Self(permits_key))
    }

    pub(crate) fn with_key(key: LockKey) -> Self {
        Self(key)
    }

    /// The gate, and the permits of that number.
    ///
    /// # Errors
    /// When a key cannot have it.
    pub(crate) fn all(&self, count: u32) -> Result<Vec<LockKey>, LockError> {
        let about = |error: LockError| error.with_key(self.0.as_str());
        let count = Permits::All(count).count().map_err(about)?;
        Ok((0..=count).map(|number| self.member(number)).collect())
    }

    /// The permits' key of a permit; `None` for any other key.
    pub(crate) fn of_permit(key: &LockKey) -> Option<Self> {
        let (permits_key, _) = member(key.as_str()).filter(|(_, number)| *number > 0)?;
        Some(Self(LockKey::within(permits_key.to_owned())))
    }

    pub(crate) fn of_gate(key: &LockKey) -> Option<Self> {
        let (permits_key, _) = member(key.as_str()).filter(|(_, number)| *number == 0)?;
        Some(Self(LockKey::within(permits_key.to_owned())))
    }

    /// The key that errors and events name: the number is not known before the grant.
    pub(crate) fn key(&self) -> &LockKey {
        &self.0
    }

    pub(crate) fn into_key(self) -> LockKey {
        self.0
    }

    pub(crate) fn member(&self, number: u8) -> LockKey {
        LockKey::within(format!("{}#{number}", self.0.as_str()))
    }

    pub(crate) fn members(&self, count: u8) -> impl Iterator<Item = LockKey> + '_ {
        (1..=count).map(|number| self.member(number))
    }

    pub(crate) fn has_more_than(&self, count: usize) -> LockError {
        let message = format!(
            "another call for this key counts more than {count} permits, and has one above that number; write the same \
             number in every program that locks this key"
        );
        invalid(message).with_key(self.0.as_str())
    }

    pub(crate) fn has(&self, key: &LockKey) -> bool {
        member(key.as_str()).is_some_and(|(permits_key, _)| permits_key == self.0.as_str())
    }
}

/// One of the places that a process has for calls that want a permit of a key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LocalPermit {
    pub(crate) permits_key: PermitsKey,
    pub(crate) number: LocalNumber,
    pub(crate) permits: u8,
}

/// Which local permit of its key it is; any permit may be granted to it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum LocalNumber {
    OneOf(u8),
    OfAll(u64),
}

impl LocalNumber {
    /// While one call holds all permits, the next may be in the queue, so each call has its own.
    pub(crate) fn next_of_all() -> Self {
        static LANES: AtomicU64 = AtomicU64::new(0);
        Self::OfAll(LANES.fetch_add(1, Ordering::Relaxed))
    }
}

impl LocalPermit {
    pub(crate) fn members(&self) -> impl Iterator<Item = LockKey> + '_ {
        self.permits_key.members(self.permits)
    }
}

/// The permits' key in the name of a permit, and its number; the gate has the number zero.
pub(crate) fn member(name: &str) -> Option<(&str, u8)> {
    let (permits_key, digits) = name.rsplit_once('#')?;
    let number = digits.parse().ok().filter(|number| *number <= MOST)?;
    let is_plain = digits.len() == if number < 10 { 1 } else { 2 };
    (is_plain && permits_key.contains('{')).then_some((permits_key, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::slot::Slot;

    fn permits_key(prefix: &str, text: &str) -> PermitsKey {
        PermitsKey::of(&LockKey::prefixed(prefix, text).unwrap(), prefix.len()).unwrap()
    }

    #[test]
    fn the_permits_of_a_key_have_one_slot() {
        let names = [("disLock:", "export"), ("", "export"), ("{shop}:", "a"), ("p:", "{user}:7")];
        let names = names.map(|(prefix, text)| permits_key(prefix, text));
        let first = names.each_ref().map(|permits_key| permits_key.member(1).as_str().to_owned());
        assert_eq!(first, ["disLock:{export}#1", "{export}#1", "{shop}:a#1", "p:{user}:7#1"]);
        for permits_key in names {
            assert!(
                permits_key.members(MOST).all(|key| Slot::of(&key) == Slot::of(permits_key.key()))
            );
            assert!(
                permits_key
                    .members(MOST)
                    .all(|key| PermitsKey::of_permit(&key).as_ref() == Some(&permits_key))
            );
        }
    }

    #[test]
    fn a_key_that_is_one_hash_tag_has_no_permits() {
        let of = |prefix: &str, text| {
            PermitsKey::of(&LockKey::prefixed(prefix, text).unwrap(), prefix.len())
        };
        for prefix in ["", "disLock:"] {
            let error = of(prefix, "{export}").unwrap_err();
            assert_eq!(error.kind(), LockErrorKind::InvalidKey, "{prefix}");
        }
        for (prefix, text) in [("{p}", "{export}"), ("", "{a}{b}"), ("", "{export}:7")] {
            assert!(of(prefix, text).is_ok(), "{prefix}{text}");
        }
    }

    #[test]
    fn other_names_are_no_permits() {
        for name in ["a#1", "{a}#65", "{a}#01", "{a}#", "{a}1", "{a}#1b", "{a}#+1", "{a}#-1"] {
            assert_eq!(member(name), None, "{name}");
        }
        assert_eq!(member("{a}#0"), Some(("{a}", 0)));
        assert_eq!(member("a#b{c}#64"), Some(("a#b{c}", 64)));
    }

    #[test]
    fn a_key_whose_permits_are_too_long_is_refused() {
        let long = LockKey::new("k".repeat(1_020)).unwrap();
        let error = PermitsKey::of(&long, 0).unwrap_err();
        assert_eq!(error.kind(), LockErrorKind::InvalidKey);
        let short = LockKey::new("k".repeat(1_019)).unwrap();
        assert_eq!(PermitsKey::of(&short, 0).unwrap().member(64).as_str().len(), 1_024);
    }
}
