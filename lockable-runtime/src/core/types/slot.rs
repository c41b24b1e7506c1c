//! The hash slot of a lock.
//!
//! See "Why does a fence counter belong to a hash slot?" in DESIGN.md.

use crate::core::types::key::LockKey;

/// The hash slots of a cluster; a single server is used as if it had them.
pub(crate) const SLOTS: usize = COUNT as usize;
pub(crate) const COUNT: u16 = 16_384;

/// The slot that [Redis
/// Cluster](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model) gives to
/// a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slot(u16);

impl Slot {
    pub(crate) fn of(key: &LockKey) -> Self {
        let key = key.as_str();
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        Self::of_text(tag.map_or(key, |(tag, _)| tag).as_bytes())
    }

    pub(super) fn of_text(text: &[u8]) -> Self {
        Self(text.iter().fold(0, |crc, byte| crc16(crc, *byte)) % COUNT)
    }

    pub(crate) fn new(number: u16) -> Self {
        Self(number % COUNT)
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..COUNT).map(Self)
    }

    pub(crate) fn number(self) -> u16 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One more byte of a CRC-16 with the polynomial 0x1021, as Redis Cluster specifies it.
#[expect(clippy::indexing_slicing, reason = "the table has an entry for each byte")]
fn crc16(crc: u16, byte: u8) -> u16 {
    const TABLE: [u16; 256] = table();
    let [high, low] = crc.to_be_bytes();
    u16::from_be_bytes([low, 0]) ^ TABLE[usize::from(high ^ byte)]
}

#[expect(clippy::indexing_slicing, reason = "the loop's condition is the bounds check")]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut at = 0_u16;
    while at < 256 {
        let mut crc = at << 8;
        let mut bit = 0;
        while bit < 8 {
            let is_set = crc & 0x8000 != 0;
            crc <<= 1;
            if is_set {
                crc ^= 0x1021;
            }
            bit += 1;
        }
        table[at as usize] = crc;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
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
}
