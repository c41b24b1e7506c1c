//! Replies and messages that a seed garbles.

use crate::dice::Dice;

use super::garble::Garble;

/// What is made of a reply or a message, drawn from many of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disorder {
    /// A value of a type that the reply does not have.
    Type,
    /// An error, which may be one that no command like this has.
    Error,
    /// A list without its last element.
    Short,
    /// A part of it, and then the connection ends.
    Cut,
    /// The beginning of what is too large.
    Size,
    /// Lists in lists.
    Depth,
    /// One byte is another one. It may be that of a length, and then what follows is read as another reply.
    Byte,
    /// A well-formed value in its place, which may be the reply to another command.
    Value,
    /// It is left out, repeated, or comes behind another one: all that follow answer the wrong commands.
    Shift,
}

impl Disorder {
    /// Those after which no reply can be taken for another one.
    pub const DETECTABLE: [Self; 6] =
        [Self::Type, Self::Error, Self::Short, Self::Cut, Self::Size, Self::Depth];

    /// Those after which one can.
    pub const DECEPTIVE: [Self; 3] = [Self::Byte, Self::Value, Self::Shift];
}

/// Garbles some of what passes, as a seed says.
#[derive(Debug)]
pub(super) struct Draw {
    pub(super) dice: Dice,
    pub(super) kinds: Vec<Disorder>,
    pub(super) share: Share,
    pub(super) garbled: Vec<Disorder>,
}

/// How much is garbled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// One of this number of replies.
    All(u64),
    /// The same, without those to the handshake of a new connection: otherwise, hardly any is ever used.
    ButHandshakes(u64),
}

/// What a client gets in the place of a reply.
#[derive(Debug)]
pub(super) struct Garbled {
    pub(super) bytes: Vec<u8>,
    /// Whether the connection ends behind it.
    pub(super) ends: bool,
}

impl Draw {
    /// What is made of the reply to this command, or of a message where there is none; nothing where it is left as it
    /// is.
    pub(super) fn next(&mut self, command: &[String]) -> Option<(Disorder, Dice)> {
        let one_of = match self.share {
            Share::ButHandshakes(_) if is_handshake(command) => return None,
            Share::All(one_of) | Share::ButHandshakes(one_of) => one_of,
        };
        if !self.dice.is_one_of(one_of) {
            return None;
        }
        let kind = self.dice.pick(&self.kinds);
        self.garbled.push(kind);
        Some((kind, Dice::new(self.dice.below(u64::MAX))))
    }
}

/// Whether a new connection sends the command: to say who it is, to ask what the server knows and how it is set, or to try a lock.
fn is_handshake(command: &[String]) -> bool {
    const NAMES: [&str; 7] =
        ["HELLO", "CLIENT", "SCRIPT", "CONFIG", "INFO", "CLUSTER", "SUBSCRIBE"];
    let is_named = command.first().is_some_and(|name| NAMES.contains(&name.as_str()));
    let is_empty_script = command.get(2).is_some_and(|count| count == "0");
    is_named || is_empty_script || command.iter().any(|word| word.contains(":probe:"))
}

impl Disorder {
    pub(super) fn of(self, mut dice: Dice, reply: &[u8]) -> Garbled {
        let ends = match self {
            Self::Cut => true,
            Self::Size => dice.is_one_of(2),
            _ => false,
        };
        let bytes = match self {
            Self::Type => dice.pick(&TYPES).as_bytes().to_vec(),
            Self::Value => dice.pick(&VALUES).as_bytes().to_vec(),
            Self::Error => format!("-{}\r\n", dice.pick(&ERRORS)).into_bytes(),
            Self::Short => Garble::Short.of(reply),
            Self::Cut => reply[..place(&mut dice, reply)].to_vec(),
            Self::Size => [dice.pick(&SIZES).as_bytes(), &vec![b'1'; PART]].concat(),
            Self::Depth => depth(&mut dice),
            Self::Byte => {
                let (place, mut bytes) = (place(&mut dice, reply), reply.to_vec());
                bytes[place] = u8::try_from(dice.below(256)).expect("it is a byte");
                bytes
            }
            Self::Shift => match dice.below(4) {
                0 => Vec::new(),
                1 => [reply, reply].concat(),
                2 => [dice.pick(&VALUES).as_bytes(), reply].concat(),
                // A client takes it for what no command has asked for.
                _ => b">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\ny\r\n".to_vec(),
            },
        };
        Garbled { bytes, ends }
    }
}

/// A place in a reply, which is not empty.
fn place(dice: &mut Dice, reply: &[u8]) -> usize {
    let length = u64::try_from(reply.len()).expect("no reply is that long");
    usize::try_from(dice.below(length)).expect("it is below the length")
}

fn depth(dice: &mut Dice) -> Vec<u8> {
    let lists =
        dice.pick(&["*1\r\n", "~1\r\n", "%1\r\n+a\r\n", "*2\r\n:1\r\n", "|1\r\n+a\r\n:1\r\n"]);
    let depth = dice.pick(&[40, 99, 5_000, 60_000]);
    [lists.repeat(depth).as_bytes(), b":1\r\n"].concat()
}

/// None of them is a grant, whatever the command.
const TYPES: [&str; 22] = [
    "+\r\n",
    "+OK\r\n",
    "+QUEUED\r\n",
    "$0\r\n\r\n",
    "$3\r\n\0\u{1}\u{2}\r\n",
    ":-1\r\n",
    ":9223372036854775807\r\n",
    ":-9223372036854775808\r\n",
    "*0\r\n",
    "*1\r\n$-1\r\n",
    "*2\r\n$-1\r\n$-1\r\n",
    "*3\r\n:1\r\n:0\r\n:-1\r\n",
    "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
    "#t\r\n",
    ",1.5\r\n",
    ",nan\r\n",
    "(3492890328409238509324850943850943825024385\r\n",
    "%1\r\n+a\r\n:1\r\n",
    "~2\r\n:1\r\n:1\r\n",
    "=7\r\ntxt:abc\r\n",
    "!9\r\nERR wrong\r\n",
    "|1\r\n+a\r\n+b\r\n+OK\r\n",
];

const VALUES: [&str; 12] = [
    "$-1\r\n",
    "*-1\r\n",
    "_\r\n",
    ":0\r\n",
    ":1\r\n",
    ":2\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n:1750000000000001\r\n:1750000000000001\r\n",
    "*3\r\n:1\r\n:1750000000000001\r\n:1750000000000001\r\n",
    "*3\r\n:0\r\n:0\r\n:18446744073709551615\r\n",
    "*3\r\n:2\r\n:-1\r\n:1\r\n",
    "$21\r\n0123456789abcdef.1234\r\n",
];

const ERRORS: [&str; 26] = [
    "",
    "ERR nonsense",
    "ERR max number of clients reached",
    "ERR unknown command 'SET', with args beginning with: ",
    "NOSCRIPT No matching script",
    "READONLY You can't write against a read only replica.",
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script.",
    "MISCONF Redis is configured to save RDB snapshots",
    "MOVED 1 127.0.0.1:1",
    "MOVED 99999 :",
    "MOVED",
    "ASK 1 127.0.0.1:1",
    "ASK ? ?:?",
    "TRYAGAIN later",
    "CLUSTERDOWN The cluster is down",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "MASTERDOWN Link with MASTER is down",
    "NOREPLICAS Not enough good replicas to write.",
    "NOAUTH Authentication required.",
    "NOPERM User app has no permissions to run the 'evalsha' command",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "UNKILLABLE Sorry",
    "EXECABORT Transaction discarded because of previous errors.",
];

const SIZES: [&str; 8] = [
    "$2147483647\r\n",
    "$9223372036854775807\r\n",
    "*2147483647\r\n:",
    "*9223372036854775807\r\n:",
    "%4611686018427387903\r\n:",
    "~9223372036854775807\r\n:",
    "!9223372036854775807\r\n",
    "+",
];

const PART: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_what_is_made_of_a_reply() {
        let made = |seed| {
            let mut draw = Draw {
                dice: Dice::new(seed),
                kinds: [Disorder::DETECTABLE.as_slice(), &Disorder::DECEPTIVE].concat(),
                share: Share::All(2),
                garbled: Vec::new(),
            };
            let drawn = (0..40).filter_map(|_| draw.next(&[]));
            let made = drawn.map(|(kind, dice)| kind.of(dice, b"*2\r\n:1\r\n:2\r\n").bytes);
            made.collect::<Vec<_>>()
        };
        assert!(made(7) == made(7) && made(7) != made(8));
        assert!((10..30).contains(&made(7).len()));
    }
}
