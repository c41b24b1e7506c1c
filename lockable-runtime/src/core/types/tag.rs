//! The text that names the fence counter of each hash slot.
//!
//! See "Why does a fence counter belong to a hash slot?" in DESIGN.md.

use std::sync::OnceLock;

use crate::core::types::slot::{SLOTS, Slot};

/// Three of these characters reach all slots, and two do not.
const BYTES: usize = 3;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The first text of three letters or digits that is in this slot, in the order of their bytes. Every process computes
/// the same one.
pub(crate) fn tag(slot: Slot) -> &'static str {
    static TAGS: OnceLock<String> = OnceLock::new();
    let start = slot.index() * BYTES;
    // There is one for each slot.
    TAGS.get_or_init(all).get(start..start + BYTES).unwrap_or_default()
}

fn all() -> String {
    let mut tags = vec![None; SLOTS];
    for text in texts() {
        if let Some(tag) = tags.get_mut(Slot::of_text(&text).index()) {
            tag.get_or_insert(text);
        }
    }
    tags.into_iter().flatten().flatten().map(char::from).collect()
}

fn texts() -> impl Iterator<Item = [u8; BYTES]> {
    let pairs = ALPHABET.iter().flat_map(|first| ALPHABET.iter().map(|second| [*first, *second]));
    pairs.flat_map(|[first, second]| ALPHABET.iter().map(move |third| [first, second, *third]))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_slot_has_a_text_of_its_own() {
        let slots: HashSet<_> = texts().map(|text| Slot::of_text(&text)).collect();
        let tags: HashSet<_> = slots.iter().map(|slot| tag(*slot)).collect();
        assert_eq!((slots.len(), tags.len()), (SLOTS, SLOTS));
        for slot in slots {
            assert_eq!(Slot::of_text(tag(slot).as_bytes()), slot);
        }
    }

    /// Another text would be another counter, which other versions do not share.
    #[test]
    fn the_text_of_a_slot_never_changes() {
        let tags =
            ["0000", "order:7", "user", "123456789"].map(|key| tag(Slot::of_text(key.as_bytes())));
        assert_eq!(tags, ["6Uc", "46q", "0bi", "74C"]);
    }
}
