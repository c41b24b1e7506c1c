//! Lock keys: what may be one, and how a value is put into one.
//!
//! See "How are values in a key escaped, and what is its hash tag?" in DESIGN.md.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::slice;
use std::str::FromStr;

use crate::core::text::hole;
use crate::core::types::error::{LockError, LockErrorKind};

/// Prefix included. A longer key is a value that was put into a template by mistake.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// A call that needs more wants a lock for all of them.
pub(crate) const MAX_KEYS: usize = 64;

/// The name of one lock.
///
/// A key is not empty, at most 1 KiB long, and has `{` and `}` only as a valid [hash
/// tag](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags), because the companion
/// keys of a lock must be in its cluster slot.
///
/// No text becomes a key implicitly. [`LockKey::from_static`] makes one from a constant, [`LockKey::new`] from any
/// other text; [`TryFrom`], [`FromStr`] and, with the feature `serde`, deserialization do the same as `new`. The locker
/// adds its prefix, so a [`LockGuard`](crate::LockGuard) shows a longer key.
///
/// # Examples
/// ```
/// use lockable_runtime::LockKey;
///
/// const NIGHTLY: LockKey = LockKey::from_static("job:nightly");
/// assert_eq!("job:nightly".parse::<LockKey>().unwrap(), NIGHTLY);
/// assert!(LockKey::new("a}b").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(Cow<'static, str>);

impl LockKey {
    /// Makes a key from a constant, checked at compile time where it is used in one.
    ///
    /// # Panics
    /// When the text cannot be a lock key; in a `const` that is a compile error.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        assert!(!text.is_empty(), "the lock key is empty");
        assert!(text.len() <= MAX_KEY_BYTES, "the lock key is longer than 1 KiB");
        assert!(has_sound_braces(text), "the lock key has braces that are no hash tag");
        Self(Cow::Borrowed(text))
    }

    /// Makes a key from a text that is only known at run time.
    ///
    /// # Errors
    /// [`InvalidKey`](crate::LockErrorKind::InvalidKey) when the text cannot be a lock key.
    pub fn new(text: impl Into<String>) -> Result<Self, LockError> {
        Self::prefixed("", &text.into())
    }

    /// Escapes a value for a key that is put together at run time, as in a hole of a template.
    ///
    /// `delimiters` are the characters that end the value if another one follows it in the key: so different values
    /// give different keys.
    ///
    /// # Errors
    /// [`InvalidKey`](crate::LockErrorKind::InvalidKey) when the value is empty, or cannot be displayed.
    ///
    /// # Examples
    /// ```
    /// use lockable_runtime::LockKey;
    ///
    /// assert_eq!(LockKey::escape("red:shoes", "").unwrap(), "red%3Ashoes");
    /// let first = LockKey::escape("a-b", "-").unwrap();
    /// assert_eq!(format!("{first}-c"), "a%2Db-c");
    /// assert!(LockKey::escape("", "").is_err());
    /// ```
    pub fn escape(value: impl Display, delimiters: &str) -> Result<String, LockError> {
        let mut text = String::new();
        let flaw = "a value of the key is empty or cannot be displayed";
        match write!(text, "{}", Part::new(&value, delimiters)) {
            Ok(()) => Ok(text),
            Err(fmt::Error) => Err(LockError::new(LockErrorKind::InvalidKey, flaw)),
        }
    }

    pub(crate) fn prefixed(prefix: &str, text: &str) -> Result<Self, LockError> {
        let mut whole = String::with_capacity(prefix.len() + text.len());
        whole.push_str(prefix);
        whole.push_str(text);
        match flaw(text, &whole) {
            None => Ok(Self(Cow::Owned(whole))),
            Some(flaw) => Err(LockError::invalid_key(&beginning(&whole), flaw)),
        }
    }

    pub(super) fn within(text: String) -> Self {
        debug_assert!(flaw(&text, &text).is_none(), "no lock key: {text}");
        Self(Cow::Owned(text))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LockKey {
    type Error = LockError;

    /// # Errors
    /// As [`LockKey::new`].
    fn try_from(text: String) -> Result<Self, LockError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for LockKey {
    type Error = LockError;

    /// # Errors
    /// As [`LockKey::new`].
    fn try_from(text: &str) -> Result<Self, LockError> {
        Self::new(text)
    }
}

impl FromStr for LockKey {
    type Err = LockError;

    /// # Errors
    /// As [`LockKey::new`].
    fn from_str(text: &str) -> Result<Self, LockError> {
        Self::new(text)
    }
}

impl AsRef<str> for LockKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of a request.
#[doc(hidden)]
pub trait Keys {
    /// As they are written: at least one.
    fn all(&self) -> &[LockKey];
}

impl Keys for LockKey {
    fn all(&self) -> &[LockKey] {
        slice::from_ref(self)
    }
}

impl Keys for Vec<LockKey> {
    fn all(&self) -> &[LockKey] {
        self
    }
}

pub(crate) fn counted(keys: Vec<LockKey>) -> Result<Vec<LockKey>, LockError> {
    let flaw = match keys.len() {
        0 => {
            "no key is given, and nothing may run without a lock; leave the call out where there is nothing to lock"
        }
        1..=MAX_KEYS => return Ok(keys),
        _ => "more than 64 keys are given; take the lock of what contains them, or work in parts",
    };
    Err(LockError::of_flaw(LockErrorKind::InvalidKey, flaw))
}

const TOO_LONG: &str = "the key is longer than 1 KiB; put an id into it, not the data";

fn beginning(key: &str) -> String {
    const SHOWN: usize = 48;
    match key.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", key.get(..end).unwrap_or_default()),
        None => key.to_owned(),
    }
}

fn flaw(text: &str, whole: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("the key is empty: every call with an empty key would share one lock");
    }
    if whole.len() > MAX_KEY_BYTES {
        return Some(TOO_LONG);
    }
    if !has_sound_braces(whole) {
        return Some(
            "`{` and `}` are allowed only as a hash tag such as `{user}:7`; values put into a key \
             template are escaped, texts given by hand are not",
        );
    }
    None
}

const fn has_sound_braces(text: &str) -> bool {
    let bytes = text.as_bytes();
    let open = position(bytes, b'{', 0);
    if open == bytes.len() {
        return position(bytes, b'}', 0) == bytes.len();
    }
    let close = position(bytes, b'}', open);
    close < bytes.len() && close > open + 1
}

/// The first position of `wanted` at or after `start`; the length when there is none.
#[expect(
    clippy::indexing_slicing,
    reason = "the loop's condition is the bounds check; no iterators in const"
)]
const fn position(bytes: &[u8], wanted: u8, start: usize) -> usize {
    let mut at = start;
    while at < bytes.len() && bytes[at] != wanted {
        at += 1;
    }
    at
}

/// Displays a value inside a lock key, so that different values always give different keys.
///
/// Percent-encoded are `%`, `:`, `{`, `}`, white space, control characters, and the delimiters: the characters that
/// follow the hole in its template, if another hole comes after them. So a rendered key can be parsed in one way only.
pub struct Part<'a, T: ?Sized> {
    value: &'a T,
    delimiters: &'a str,
}

impl<T: ?Sized> fmt::Debug for Part<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("delimiters", &self.delimiters).finish_non_exhaustive()
    }
}

impl<'a, T: ?Sized> Part<'a, T> {
    /// Wraps a value for one or more holes of a template.
    ///
    /// Unbounded, so that a value that cannot be displayed is reported at its hole.
    pub fn new(value: &'a T, delimiters: &'a str) -> Self {
        Self { value, delimiters }
    }
}

/// The value for a hole of a key template.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a lock key, because it has no `std::fmt::Display`",
    label = "cannot be a part of a lock key",
    note = "implement `std::fmt::Display` for a type of yours, bound a type parameter by `T: std::fmt::Display`, or name the part of the value that tells locks apart, as in `key(\"{{}}\", order.id)`",
    note = "for an `Option` or a list say what it is in a key, as in `key(\"{{}}\", id.unwrap_or(0))` or `key(\"{{}}\", names.join(\",\"))`"
)]
pub trait KeyPart {
    /// Displays the value.
    ///
    /// # Errors
    /// Those of the writer, and of the value.
    fn display(&self, out: &mut impl Write) -> fmt::Result;
}

#[diagnostic::do_not_recommend]
impl<T: Display + ?Sized> KeyPart for T {
    fn display(&self, out: &mut impl Write) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl<T: KeyPart + ?Sized> Display for Part<'_, T> {
    /// Fails on a value that displays as nothing: two such keys would be one lock.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaped = Escaped { out: f, delimiters: self.delimiters, is_empty: true };
        self.value.display(&mut escaped)?;
        if escaped.is_empty { Err(fmt::Error) } else { Ok(()) }
    }
}

struct Escaped<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    delimiters: &'a str,
    is_empty: bool,
}

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.is_empty &= text.is_empty();
        let delimiters = self.delimiters;
        let is_special = |c: char| {
            matches!(c, '%' | ':' | '{' | '}')
                || c.is_whitespace()
                || c.is_control()
                || delimiters.contains(c)
        };
        // Of each piece only the last character can be a special one.
        for piece in text.split_inclusive(is_special) {
            let (plain, special) = piece.split_at(piece.trim_end_matches(is_special).len());
            self.out.write_str(plain)?;
            special.bytes().try_for_each(|byte| write!(self.out, "%{byte:02X}"))?;
        }
        Ok(())
    }
}

/// Renders a key template whose holes are [`Part`]s, up to the longest key; `label` is the same as text.
///
/// # Errors
/// With what was rendered so far and what is wrong.
pub(crate) fn render(
    template: fmt::Arguments<'_>,
    label: &str,
) -> Result<String, (String, String)> {
    let mut key = Bounded(String::with_capacity(48));
    match key.write_fmt(template) {
        Ok(()) => Ok(key.0),
        Err(fmt::Error) if key.0.len() > MAX_KEY_BYTES => {
            Err((beginning(&key.0), TOO_LONG.to_owned()))
        }
        Err(fmt::Error) => {
            let hole = hole::at_end(label, &key.0);
            Err((key.0, format!("the value of {hole} is empty or cannot be displayed")))
        }
    }
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() > MAX_KEY_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
