//! What an owner token says to those who may not see it: whose it is, and when its lock was asked for.
//!
//! See "How does `CLIENT LIST` show which process holds a lock?" in DESIGN.md.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::types::error::LockError;
use crate::types::process::PerProcess;
use crate::types::random::{of_system, random};

/// One process that locks: six hexadecimal digits, with which its owner tokens begin.
///
/// Each process draws its own at its first use of a lock, a forked one too. So the holder of a lock, an entry in its
/// queue and a connection in the server's list are known to be of one process.
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
    /// That of this process.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn current() -> Result<Self, LockError> {
        /// Zero until it was drawn.
        static CURRENT: PerProcess<AtomicU32> = PerProcess::new();
        #[cfg(test)]
        if crate::types::seeded::start().is_some() {
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

    /// That of an origin.
    pub(super) fn leading(origin: u64) -> Self {
        Self(u32::try_from(origin >> REST_BITS).unwrap_or_default())
    }

    /// These random bits behind its digits.
    pub(super) fn origin(self, random: u64) -> u64 {
        (u64::from(self.0) << REST_BITS) | (random & ((1 << REST_BITS) - 1))
    }
}

/// How many bits of an origin do not say which process it is of.
const REST_BITS: u32 = 40;

/// With the digits that are meant everywhere else.
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
/// It is short enough to type: two holds have the same id in one case of four thousand million. Operations compare
/// the whole owner token.
///
/// # Examples
/// ```
/// # fn example() -> Result<(), lockable_runtime::admin::IdError> {
/// use lockable_runtime::admin::HolderId;
///
/// let id: HolderId = "3fa91c02".parse()?;
/// assert_eq!(id.to_string(), "3fa91c02");
/// assert!("3fa9".parse::<HolderId>().is_err());
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderId(u32);

impl HolderId {
    /// Folded: other versions have to find the same. Of a long value only as much counts as a listing reads.
    pub(crate) fn of(owner: &LockValue) -> Self {
        let hash = fnv_1a(owner.0.iter().take(LockValue::MAX_BYTES));
        let folded = (hash >> 32) ^ (hash & u64::from(u32::MAX));
        Self(u32::try_from(folded).unwrap_or_default())
    }
}

/// FNV-1a: a hash that is the same in every process and version, and no secret.
pub(super) fn fnv_1a<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    bytes.fold(0xCBF2_9CE4_8422_2325, add)
}

/// With the digits that are meant everywhere else.
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
///
/// # Examples
/// ```
/// use lockable_runtime::admin::HolderId;
///
/// let error = "order:7".parse::<HolderId>().unwrap_err();
/// assert_eq!(error.to_string(), "an id of this kind is 8 hexadecimal digits");
/// ```
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

/// The value of a lock, which another library may have written: an owner token, other text, or any bytes. Of a long one
/// it may be the beginning.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LockValue(Vec<u8>);

impl LockValue {
    /// A listing reads no more bytes: no owner token has as many.
    pub(crate) const MAX_BYTES: usize = 1_024;

    /// Without the mark of a waiter.
    pub(crate) fn new(mut value: Vec<u8>) -> Self {
        if unmarked(&value).len() < value.len() {
            value.remove(0);
        }
        Self(value)
    }

    /// Whether this, which may be the beginning of a long value, is of that one.
    pub(crate) fn is_of(&self, whole: &Self) -> bool {
        self == whole || self.0.len() == Self::MAX_BYTES && whole.0.starts_with(&self.0)
    }

    /// Whether there is nothing, as under a key that was deleted before it was read.
    #[cfg(feature = "redis")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What may be an owner token; nothing where it is no text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// How long the lock lasts whose key lasts for that long: one that is kept for its waiters, without their second.
    #[cfg(feature = "redis")]
    pub(crate) fn lasts(&self, rest: Duration) -> Duration {
        let parts = TokenParts::parse(self.text());
        let is_for_waiters = parts.is_some_and(|parts| parts.mark == Some(Mark::KeptForWaiters));
        rest.saturating_sub(if is_for_waiters { FOR_WAITERS } else { Duration::ZERO })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A lock that has a holder.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// What the holder wrote there; it is never shown.
    pub(crate) owner: LockValue,
    /// How long it lasts; `None` is without an end.
    pub(crate) remaining: Option<Duration>,
}

/// What the owner token in the value of a lock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenParts<'a> {
    pub(crate) mark: Option<Mark>,
    pub(crate) process: ProcessId,
    /// By the clock of the process; `None` where that cannot be.
    pub(crate) attempted_at: Option<SystemTime>,
    /// Whether the attempt was one of a waiter.
    pub(crate) is_from_queue: bool,
    /// Whether the attempt was one of a `once` call.
    pub(crate) is_of_once: bool,
    pub(crate) identity: Option<&'a str>,
}

/// For so much longer a lock stays taken after its minimum hold, while calls wait for it.
#[cfg(feature = "redis")]
const FOR_WAITERS: Duration = Duration::from_secs(1);

/// What is in front of the owner token of a lock that no process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `~`: it was released before its minimum hold was over, and is kept only until then.
    Kept,
    /// `=`: for those who wait, a second longer.
    KeptForWaiters,
    /// `@`: a ticket has it.
    ///
    /// See "How does a ticket pass a lock to another process?" in DESIGN.md.
    Ticket,
    /// `|`: an operator keeps it taken; what is behind the token says until when, and why.
    ///
    /// See "How does a pause keep a lock taken?" in DESIGN.md.
    Paused,
}

/// The mark of a ticket. Scripts compare it as a part of the owner token, and write none in front of it.
pub(super) const TICKET: char = '@';

/// The mark of a pause, which scripts treat in the same way.
pub(super) const PAUSE: char = '|';

/// Whether the value of a lock is a holder's, by its first byte: in front of others is a mark, or another program wrote
/// them. An empty one is no value.
pub(crate) fn is_of_holder(value: &[u8]) -> bool {
    value.first().is_none_or(|first| first.is_ascii_hexdigit() || *first == b'+')
}

pub(crate) fn is_pause(value: &[u8]) -> bool {
    value.first().is_some_and(|mark| char::from(*mark) == PAUSE)
}

/// The value of a lock without the `+` that its first waiter writes in front of an owner token which a command would
/// delete. All other values stay as they are: another program may have written them.
pub(crate) fn unmarked(value: &[u8]) -> &[u8] {
    match value {
        [b'+', token @ ..] if is_released_by_command(token) => token,
        _ => value,
    }
}

fn is_released_by_command(value: &[u8]) -> bool {
    let origin = value.get(..ORIGIN_DIGITS).unwrap_or_default();
    let rest = value.get(ORIGIN_DIGITS..).unwrap_or_default();
    is_origin(origin) && matches!(rest, [b'-', digit, ..] if digit.is_ascii_digit())
}

impl<'a> TokenParts<'a> {
    /// Whether the lock was released, and stays taken.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.mark, Some(Mark::Kept | Mark::KeptForWaiters))
    }

    /// Whether the lock is done. The mark alone says no more than that it is kept, as by `min_hold`.
    pub(crate) fn is_done(&self) -> bool {
        self.is_kept() && self.is_of_once
    }

    /// `None` for a value that another library wrote.
    pub(crate) fn parse(value: &'a str) -> Option<Self> {
        let (mark, owner) = match value.split_at_checked(1) {
            Some(("~", owner)) => (Some(Mark::Kept), owner),
            Some(("=", owner)) => (Some(Mark::KeptForWaiters), owner),
            Some((mark, owner)) if mark.starts_with(TICKET) => (Some(Mark::Ticket), owner),
            Some((mark, owner)) if mark.starts_with(PAUSE) => (Some(Mark::Paused), owner),
            _ => (None, value),
        };
        let (acquisition, identity) = match owner.split_once(' ') {
            Some((acquisition, identity)) => (acquisition, Some(identity)),
            None => (owner, None),
        };
        let (origin, number) = acquisition.split_once(['.', '-'])?;
        let (number, is_of_once) =
            number.strip_suffix(ONCE).map_or((number, false), |number| (number, true));
        if !is_origin(origin.as_bytes())
            || number.is_empty()
            || !number.bytes().all(|it| it.is_ascii_digit())
        {
            return None;
        }
        let attempted_at = attempted_at(number);
        let origin = u64::from_str_radix(origin, 16).ok()?;
        Some(Self {
            mark,
            process: ProcessId::leading(origin),
            attempted_at,
            is_from_queue: attempted_at.is_some() && number.len() == TIME_DIGITS + RANDOM_DIGITS,
            is_of_once,
            identity: identity.filter(|identity| !identity.is_empty()),
        })
    }
}

/// Whether a lock with this value is done: a `once` call ended well, and left it taken.
#[cfg(any(feature = "redis", test))]
pub(crate) fn is_done(value: &[u8]) -> bool {
    let is_kept = matches!(value, [b'~' | b'=', ..]);
    let text = is_kept.then(|| std::str::from_utf8(value).ok()).flatten();
    text.and_then(TokenParts::parse).is_some_and(|parts| parts.is_done())
}

fn is_origin(text: &[u8]) -> bool {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    text.len() == ORIGIN_DIGITS && text.iter().all(is_hex)
}

pub(super) const ORIGIN_DIGITS: usize = 16;

/// What is behind the number of a `once` call.
pub(super) const ONCE: char = '!';

/// The time in the number of an owner token, if that is one.
fn attempted_at(number: &str) -> Option<SystemTime> {
    if number.len() != TIME_DIGITS && number.len() != TIME_DIGITS + RANDOM_DIGITS {
        return None;
    }
    let micros = number.get(..TIME_DIGITS)?.parse().ok()?;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros))?;
    let latest = SystemTime::now().checked_add(Duration::from_secs(86_400))?;
    (micros >= EARLIEST && time <= latest).then_some(time)
}

/// Microseconds of a time have that many digits until the year 2286.
const TIME_DIGITS: usize = 16;

/// What is behind the time in the number of a waiter.
const RANDOM_DIGITS: usize = 10;

/// The year 2020: there was no lock of ours before.
const EARLIEST: u64 = 1_577_836_800_000_000;

/// The number in the owner token of a single try: the time, and above any number that this process had before.
pub(super) fn number_of_try() -> u64 {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    #[cfg(test)]
    if let Some(bits) = crate::types::seeded::bits() {
        return bits;
    }
    let now = micros();
    let next = |latest: u64| Some(now.max(latest.saturating_add(1)));
    let before = LATEST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    now.max(before.unwrap_or_default().saturating_add(1))
}

/// The number in the owner token of a waiter: the time, and ten random digits behind it. Another process may have
/// the same origin for a while: one that was started from the same image.
#[derive(Clone, Copy)]
pub(crate) struct NumberOfWaiter {
    micros: u64,
    random: u64,
}

impl NumberOfWaiter {
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn draw() -> Result<Self, LockError> {
        Ok(Self { micros: micros(), random: random()? % 10_u64.pow(10) })
    }
}

impl fmt::Display for NumberOfWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0TIME_DIGITS$}{:0RANDOM_DIGITS$}", self.micros, self.random)
    }
}

/// Microseconds since 1970; in a simulation by its own clock.
fn micros() -> u64 {
    #[cfg(test)]
    if let Some(start) = crate::types::seeded::start() {
        let passed = tokio::time::Instant::now().saturating_duration_since(start);
        return EARLIEST + u64::try_from(passed.as_micros()).unwrap_or_default();
    }
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
