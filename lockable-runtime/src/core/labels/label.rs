//! What many locks have in common: a constant that logs and metrics may show, and never a key.
//!
//! See "Why is the key template the label of logs and metrics?" in DESIGN.md.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::core::labels::grow_only::GrowOnly;
use crate::core::labels::metric_keys::MetricKeys;

/// Names the locks of one place in the code. The attribute has one as a `static` of its own.
pub struct Label {
    /// The key template; empty without one.
    lock: &'static str,
    /// The path of the decorated function; empty without one.
    function: &'static str,
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "there are none"))]
    pub(crate) metrics: MetricKeys,
}

static NONE: Label = Label::new("", "");

static BY_HAND: [GrowOnly<Label>; 64] = [const { GrowOnly::new() }; 64];

impl Label {
    /// Makes the label of a key template and of the function under it.
    #[must_use]
    pub const fn new(lock: &'static str, function: &'static str) -> Self {
        Self { lock, function, metrics: MetricKeys::new() }
    }

    /// The label of locks that no attribute makes. It is stored for as long as the program runs, once for each text.
    pub(crate) fn by_hand(lock: &'static str) -> &'static Self {
        let mut hasher = DefaultHasher::new();
        lock.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % 64).unwrap_or_default();
        match BY_HAND.get(at) {
            Some(list) if !lock.is_empty() => {
                list.find_or_add(|label| label.lock == lock, || Self::new(lock, ""))
            }
            _ => &NONE,
        }
    }

    pub(crate) fn lock(&self) -> Option<&'static str> {
        Some(self.lock).filter(|lock| !lock.is_empty())
    }

    pub(crate) fn function(&self) -> Option<&'static str> {
        Some(self.function).filter(|function| !function.is_empty())
    }
}

impl Default for &'static Label {
    fn default() -> Self {
        &NONE
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, function, .. } = self;
        f.debug_struct("Label").field("lock", lock).field("function", function).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_label() {
        let label = Label::by_hand("order:{id}");
        assert_eq!((label.lock(), label.function()), (Some("order:{id}"), None));
        assert!(std::ptr::eq(label, Label::by_hand("order:{id}")));
        assert!(!std::ptr::eq(label, Label::by_hand("stock:{id}")));
        assert_eq!(Label::by_hand("").lock(), None);
    }
}
