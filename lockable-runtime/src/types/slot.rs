//! The hash slot of a lock, and the text that names the fence counter of each slot.
//!
//! See "Why does a fence counter belong to a hash slot?" in DESIGN.md.

use std::sync::OnceLock;

use crate::types::key::LockKey;

/// How many hash slots a cluster has; a single server hashes nothing, and is used alike.
pub(crate) const SLOTS: usize = 16_384;

/// The slot that [Redis Cluster](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model)
/// gives to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot(u16);

/// How long the text of a slot is: the characters below reach all slots with three, and not with two.
const TAG_BYTES: usize = 3;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Slot {
    /// The slot of the key's hash tag, or else of the whole key.
    pub(crate) fn of(key: &LockKey) -> Self {
        let key = key.as_str();
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        Self::of_text(tag.map_or(key, |(tag, _)| tag).as_bytes())
    }

    fn of_text(text: &[u8]) -> Self {
        Self(text.iter().fold(0, |crc, byte| crc16(crc, *byte)) % SLOTS as u16)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The first text of three letters or digits that is in this slot, in the order of their bytes. Every
    /// process computes the same one.
    pub(crate) fn tag(self) -> &'static str {
        static TAGS: OnceLock<String> = OnceLock::new();
        let start = self.index() * TAG_BYTES;
        // There is one for each slot.
        TAGS.get_or_init(tags).get(start..start + TAG_BYTES).unwrap_or_default()
    }
}

/// The texts of all slots, one behind the other: 48 KiB.
fn tags() -> String {
    let mut tags = vec![None; SLOTS];
    for text in texts() {
        tags[Slot::of_text(&text).index()].get_or_insert(text);
    }
    tags.into_iter().flatten().flatten().map(char::from).collect()
}

fn texts() -> impl Iterator<Item = [u8; TAG_BYTES]> {
    let pairs = ALPHABET.iter().flat_map(|first| ALPHABET.iter().map(|second| [*first, *second]));
    pairs.flat_map(|[first, second]| ALPHABET.iter().map(move |third| [first, second, *third]))
}

/// One byte more of a CRC-16 with the polynomial 0x1021, as the specification of Redis Cluster has it.
fn crc16(crc: u16, byte: u8) -> u16 {
    const TABLE: [u16; 256] = table();
    let [high, low] = crc.to_be_bytes();
    u16::from_be_bytes([low, 0]) ^ TABLE[usize::from(high ^ byte)]
}

#[expect(clippy::indexing_slicing, reason = "the loop's condition is the bounds check")]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < table.len() {
        let mut crc = (at as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let is_set = crc & 0x8000 != 0;
            crc <<= 1;
            if is_set {
                crc ^= 0x1021;
            }
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn slot(key: &'static str) -> usize {
        Slot::of(&LockKey::from_static(key)).index()
    }

    /// As `CLUSTER KEYSLOT` of Redis 7.0 answers.
    #[test]
    fn slots_are_those_of_the_server() {
        assert_eq!((slot("123456789"), slot("disLock:order:7")), (12_739, 986));
        assert_eq!((slot("{user}:7"), slot("a{user}b")), (slot("user"), 5_474));
        assert_eq!(slot("{b}c"), 3_300);
    }

    #[test]
    fn every_slot_has_a_text_of_its_own() {
        let slots = 0..u16::try_from(SLOTS).unwrap();
        let tags: HashSet<_> = slots.clone().map(|slot| Slot(slot).tag()).collect();
        assert_eq!(tags.len(), SLOTS);
        for slot in slots {
            assert_eq!(Slot::of_text(Slot(slot).tag().as_bytes()), Slot(slot));
        }
    }

    /// Another text would be another counter, which other versions do not share.
    #[test]
    fn the_text_of_a_slot_never_changes() {
        let tags = [0, 1, 8_191, 16_383].map(|slot| Slot(slot).tag());
        assert_eq!(tags, ["06S", "2Gx", "6xN", "6ZJ"]);
    }
}
