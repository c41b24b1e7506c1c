//! Owner tokens, as histories have them.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of an owner token without the mark of a waiter or of a minimum hold: a history shows no token.
pub(crate) fn hash(owner: &str) -> String {
    let mut hasher = DefaultHasher::new();
    owner.trim_start_matches(|char: char| !char.is_ascii_alphanumeric()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
