//! What becomes of replies where a server, or something before it, is broken.

use crate::resp::elements;

/// What is made of a reply, which the server has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Garble {
    /// A text in the place of anything.
    Text,
    /// A list in the place of anything.
    List,
    /// A list without its last element; where that is a list, it lacks its own last one.
    Short,
    /// Nothing: the next reply comes in its place.
    Swallowed,
    /// Half of it, and then the connection ends.
    Cut,
    /// A text of two gigabytes, of which a part comes before the connection ends.
    Huge,
    /// A list of two thousand million elements, of which some come before the connection ends.
    Many,
    /// Lists in lists, more than a stack has room for.
    Nested,
}

impl Garble {
    /// One of each.
    pub const ALL: [Self; 8] = [
        Self::Text,
        Self::List,
        Self::Short,
        Self::Swallowed,
        Self::Cut,
        Self::Huge,
        Self::Many,
        Self::Nested,
    ];

    pub(super) fn of(self, reply: &[u8]) -> Vec<u8> {
        match self {
            Self::Text => b"+nonsense\r\n".to_vec(),
            Self::List => b"*1\r\n+nonsense\r\n".to_vec(),
            Self::Short => shortened(reply),
            Self::Swallowed => Vec::new(),
            Self::Cut => reply[..reply.len() / 2].to_vec(),
            Self::Huge => [format!("${MOST}\r\n").into_bytes(), vec![b'x'; PART]].concat(),
            Self::Many => format!("*{MOST}\r\n{}", ":1\r\n".repeat(1_000)).into_bytes(),
            Self::Nested => b"*1\r\n".repeat(5_000),
        }
    }

    /// Whether the connection ends behind it.
    pub(super) fn ends(self) -> bool {
        matches!(self, Self::Cut | Self::Huge | Self::Many)
    }
}

fn shortened(reply: &[u8]) -> Vec<u8> {
    let mut elements = elements(reply);
    let Some(last) = elements.pop() else { return reply.to_vec() };
    let rest = shortened(&last);
    if rest != last {
        elements.push(rest);
    }
    let kind = char::from(reply[0]);
    [format!("{kind}{}\r\n", elements.len()).into_bytes(), elements.concat()].concat()
}

/// The largest length that some clients can read.
const MOST: u32 = i32::MAX.unsigned_abs();

const PART: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::Garble;

    #[test]
    fn the_last_element_is_left_out() {
        let short = |reply: &str| String::from_utf8(Garble::Short.of(reply.as_bytes())).unwrap();
        assert_eq!(short("*3\r\n:1\r\n:2\r\n$1\r\n3\r\n"), "*2\r\n:1\r\n:2\r\n");
        assert_eq!(short("*2\r\n:1\r\n*1\r\n:2\r\n"), "*2\r\n:1\r\n*0\r\n");
        for whole in ["*0\r\n", ":1\r\n", "$-1\r\n"] {
            assert_eq!(short(whole), whole);
        }
    }
}
