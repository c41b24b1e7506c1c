//! The ids of processes and holds, which are shown in place of owner tokens.
//!
//! See "How does `CLIENT LIST` show which process holds a lock?" in DESIGN.md.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::core::process::PerProcess;
use crate::core::types::error::LockError;
use crate::core::types::random::of_system;

/// One process that locks: six hexadecimal digits, with which its owner tokens begin.
///
/// Each process draws its own at its first use of a lock, a forked one too. They show that a holder, an entry in a
/// queue and a connection in the server's list are of one process.
///
/// # What this does not guarantee
/// They are no secret, and not unique for ever: of 500 processes, two have the same in one case of a hundred.
///
/// # Examples
/// ```
/// # fn example() -> Result<(), lockable_runtime::admin::IdError> {
/// use lockable_runtime::admin::ProcessId;
///
/// let process: ProcessId = "0a1b2c".parse()?;
/// assert_eq!(process.to_string(), "0a1b2c");
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(u32);

impl ProcessId {
    pub(crate) fn current() -> Result<Self, LockError> {
        static CURRENT: PerProcess<AtomicU32> = PerProcess::new();
        #[cfg(test)]
        if crate::core::process::seeded::start().is_some() {
            return Ok(Self(0x005E_EDED));
        }
        let current = CURRENT.get();
        let known = current.load(Ordering::Acquire);
        if known != 0 {
            return Ok(Self(known));
        }
        let Self(drawn) = Self::leading(of_system()?);
        let set = Ordering::AcqRel;
        let order = Ordering::Acquire;
        let first = current.compare_exchange(0, drawn.max(1), set, order);
        Ok(Self(first.map_or_else(|known| known, |_| drawn.max(1))))
    }

    pub(super) fn leading(origin: u64) -> Self {
        Self(u32::try_from(origin >> REST_BITS).unwrap_or_default())
    }

    pub(super) fn origin(self, random: u64) -> u64 {
        (u64::from(self.0) << REST_BITS) | (random & ((1 << REST_BITS) - 1))
    }
}

/// How many bits of an origin do not say which process it is of.
const REST_BITS: u32 = 40;

impl fmt::Debug for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessId({self})")
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// Reads what [`Display`](fmt::Display) wrote.
impl FromStr for ProcessId {
    type Err = IdError;

    /// # Errors
    /// When the text is not six hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, IdError> {
        hex(text, 6).map(Self)
    }
}

/// One hold of one lock: eight hexadecimal digits, a hash of the holder's value.
///
/// With it an operator names one hold, and never handles the owner token. Every process computes the same digits.
///
/// # What this does not guarantee
/// Two holds have the same id in one case of four thousand million. Operations compare the whole owner token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId(u32);

impl HolderId {
    /// A folded hash of the value, which other versions have to find too; of a long value, the caller passes the
    /// beginning that a listing reads.
    pub(super) fn of(value: &[u8]) -> Self {
        let hash = fnv_1a(value.iter());
        let folded = (hash >> 32) ^ (hash & u64::from(u32::MAX));
        Self(u32::try_from(folded).unwrap_or_default())
    }
}

/// FNV-1a: a hash that is the same in every process and version, and no secret.
pub(super) fn fnv_1a<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    bytes.fold(0xCBF2_9CE4_8422_2325, add)
}

impl fmt::Debug for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderId({self})")
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Reads what [`Display`](fmt::Display) wrote.
impl FromStr for HolderId {
    type Err = IdError;

    /// # Errors
    /// When the text is not eight hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, IdError> {
        hex(text, 8).map(Self)
    }
}

/// A text that is no [`ProcessId`] or no [`HolderId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdError(usize);

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id of this kind is {} hexadecimal digits", self.0)
    }
}

impl Error for IdError {}

fn hex(text: &str, digits: usize) -> Result<u32, IdError> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hex.then(|| u32::from_str_radix(text, 16).ok());
    number.flatten().ok_or(IdError(digits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let process = ProcessId::current().unwrap();
        assert_eq!(process.to_string().parse(), Ok(process));
        let holder = HolderId::of(b"0123456789abcdef.1");
        assert_eq!(holder.to_string().parse(), Ok(holder));
        for text in ["", "+12345", "12345", "1234567", "12345g", "é1234"] {
            assert_eq!(text.parse::<ProcessId>(), Err(IdError(6)), "{text:?}");
        }
    }

    /// Another hash would be another id, which other versions do not know.
    #[test]
    fn the_id_of_a_hold_never_changes() {
        let id = |owner: &[u8]| HolderId::of(owner).to_string();
        assert_eq!(id(b"0123456789abcdef.1750000000000001"), "10658835");
        assert_eq!(id(b""), "4fd0bfc1");
    }

    proptest! {
        #[test]
        fn an_id_is_read_as_it_is_written_or_refused(text in "[0-9a-fA-F]{5,9}|.{0,9}") {
            if let Ok(process) = text.parse::<ProcessId>() {
                prop_assert_eq!(process.to_string(), text.to_lowercase());
            }
        }
    }
}
