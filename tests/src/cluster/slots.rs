//! Which slot a key belongs to, as the specification of Redis Cluster has it.

use std::collections::HashSet;

/// How many there are.
pub const SLOTS: u16 = 16_384;

/// The slot of a key, by its name in the server.
pub fn slot(name: &str) -> u16 {
    crc16(tag(name)) % SLOTS
}

/// The slots that a master had when it was asked.
#[derive(Debug)]
pub struct Shard(HashSet<u16>);

impl Shard {
    pub(super) fn new(slots: impl IntoIterator<Item = u16>) -> Self {
        Self(slots.into_iter().collect())
    }

    /// Whether the key is in one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&slot(name))
    }
}

/// The text between the first brace and the next closing one, if there is one, and else all of it.
fn tag(name: &str) -> &str {
    let tag = name.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(name)
}

/// CRC-16/XMODEM.
fn crc16(text: &str) -> u16 {
    text.bytes().fold(0, |sum, byte| {
        let shifted = |sum: u16, _| if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 };
        (0..8).fold(sum ^ (u16::from(byte) << 8), shifted)
    })
}

#[cfg(test)]
mod tests {
    use super::slot;

    #[test]
    fn slots_are_those_of_the_specification() {
        let names = ["123456789", "a{user}b", "user", "{}x", "foo{}{bar}"];
        assert_eq!(names.map(slot), [12_739, 5_474, 5_474, slot("{}x"), 8_363]);
    }
}
