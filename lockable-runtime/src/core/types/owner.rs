//! The value of a lock: an owner token, and the marks in front of it and in it. No other file knows them; in the
//! scripts `value.lua` does.
//!
//! See "When does one `DELEX` or `DELIFEQ` release a lock?" in DESIGN.md.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::core::request_id::RequestId;
use crate::core::types::error::LockError;
use crate::core::types::id::{HolderId, ProcessId};
use crate::core::types::random::random;
use crate::core::types::reason::Reason;

/// The text stored under a lock key: proves that one acquisition, and no other, is the holder's.
///
/// It reads `<16 hex digits>.<number>`, and ` <request id>` behind that if there is one. The first six digits are the
/// process, and the number begins with the time of the attempt: [`TokenParts`] reads them. The point is a hyphen if its
/// holder [releases by a command](ReleasedBy::Command). Behind the number of a `once` call is a `!`.
///
/// Never shown in messages or logs: to know it is enough to release the lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerToken(String);

impl OwnerToken {
    /// Makes a token that no other acquisition has.
    pub(crate) fn draw(identity: Option<&RequestId>) -> Result<Self, LockError> {
        Ok(Self::at(Origin::draw()?, number_of_try(), identity))
    }

    pub(crate) fn released_by(&self) -> ReleasedBy {
        let is_command = self.0.as_bytes().get(ORIGIN_DIGITS) == Some(&b'-');
        if is_command { ReleasedBy::Command } else { ReleasedBy::Script }
    }

    /// No other token of the origin may have the number.
    pub(crate) fn at(
        origin: Origin,
        number: impl fmt::Display,
        identity: Option<&RequestId>,
    ) -> Self {
        Self::written(origin, ReleasedBy::Script, number, identity)
    }

    pub(crate) fn written(
        origin: Origin,
        released_by: ReleasedBy,
        number: impl fmt::Display,
        identity: Option<&RequestId>,
    ) -> Self {
        let (separator, Origin(origin)) = (released_by.separator(), origin);
        let (blank, identity) = identity.map_or(("", ""), |identity| (" ", identity.as_str()));
        // The origin, a point, the number of a waiter, and a blank.
        let mut text = String::with_capacity(44 + identity.len());
        // Writing to a string never fails. One pass of the formatter, because each costs more than what it writes.
        write!(text, "{origin:016x}{separator}{number}").unwrap_or_default();
        text.push_str(blank);
        text.push_str(identity);
        Self(text)
    }

    /// Adds the mark of a `once` call, which the script of such a call recognizes.
    ///
    /// See "How does `once` tell a completed run from a busy lock?" in DESIGN.md.
    pub(crate) fn of_once(mut self) -> Self {
        let end = self.0.find(' ').unwrap_or(self.0.len());
        debug_assert!(self.0.find('-').is_none_or(|at| at > end), "a command keeps no lock taken");
        self.0.insert(end, ONCE);
        self
    }

    pub(crate) fn of_ticket(&self) -> Self {
        Self(format!("{TICKET}{}", self.0))
    }

    /// The token ends with the time until when the lock is paused, and the reason.
    pub(crate) fn of_pause(&self, until: &str, reason: &Reason) -> Self {
        Self(format!("{PAUSE}{} {until} {reason}", self.0).trim_end().to_owned())
    }

    pub(crate) fn is_of_once(&self) -> bool {
        self.0.split(' ').next().is_some_and(|acquisition| acquisition.ends_with(ONCE))
    }

    pub(crate) fn received(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What the tokens of one locker's waiters begin with, and the address that their wake-ups are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin(pub(super) u64);

impl Origin {
    pub(crate) fn draw() -> Result<Self, LockError> {
        Self::draw_in(ProcessId::current()?)
    }

    /// As [`draw`](Self::draw), for a process whose id the caller has looked up before.
    pub(super) fn draw_in(process: ProcessId) -> Result<Self, LockError> {
        random().map(|bits| Self(process.origin(bits)))
    }

    pub(crate) fn of(owner: &OwnerToken) -> Option<Self> {
        let (origin, _) = owner.as_ref().split_once('.')?;
        u64::from_str_radix(origin, 16).ok().map(Self)
    }

    pub(crate) fn is_of(self, owner: &str) -> bool {
        owner.split_once('.').is_some_and(|(origin, _)| origin == self.to_string())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleasedBy {
    /// By a script, which looks at the queue.
    Script,
    /// By a command that deletes the lock if it has this owner token and no waiter has marked it. Only such a token is
    /// ever marked.
    Command,
}

impl ReleasedBy {
    fn separator(self) -> char {
        match self {
            Self::Script => '.',
            Self::Command => '-',
        }
    }
}

impl AsRef<str> for OwnerToken {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(redacted)")
    }
}

/// The value of a lock, or its beginning: an owner token, or other text or bytes of another library.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LockValue(Vec<u8>);

impl LockValue {
    /// A listing reads no more; every owner token is shorter.
    pub(crate) const MAX_BYTES: usize = 1_024;

    pub(crate) fn new(mut value: Vec<u8>) -> Self {
        if unmarked(&value).len() < value.len() {
            value.remove(0);
        }
        Self(value)
    }

    pub(crate) fn is_of(&self, whole: &Self) -> bool {
        self == whole || self.0.len() == Self::MAX_BYTES && whole.0.starts_with(&self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// How long the lock lasts whose key lasts that long: without the second for waiters.
    pub(crate) fn lasts(&self, rest: Duration) -> Duration {
        let parts = TokenParts::parse(self.text());
        let is_for_waiters = parts.is_some_and(|parts| parts.mark == Some(Mark::KeptForWaiters));
        rest.saturating_sub(if is_for_waiters { FOR_WAITERS } else { Duration::ZERO })
    }

    pub(crate) fn id(&self) -> HolderId {
        HolderId::of(self.0.get(..Self::MAX_BYTES).unwrap_or(&self.0))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// What the holder wrote; it is never shown.
    pub(crate) owner: LockValue,
    /// `None` if it has no end, or none is known.
    pub(crate) remaining: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenParts<'a> {
    pub(crate) mark: Option<Mark>,
    pub(crate) process: ProcessId,
    /// By the clock of the process; `None` if that is no possible time.
    pub(crate) attempted_at: Option<SystemTime>,
    pub(crate) is_from_queue: bool,
    pub(crate) is_of_once: bool,
    pub(crate) identity: Option<&'a str>,
}

/// How much longer than its minimum hold a lock stays taken while calls wait for it.
const FOR_WAITERS: Duration = Duration::from_secs(1);

/// What is in front of the owner token of a lock that no process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `~`: it was released before its minimum hold was over, and is kept only until then.
    Kept,
    /// `=`: the same, and a second longer for those who wait.
    KeptForWaiters,
    /// `@`: a ticket has it.
    ///
    /// See "How does a ticket pass a lock to another process?" in DESIGN.md.
    Ticket,
    /// `|`: an operator keeps it taken; until when and why is behind the token.
    ///
    /// See "How does a pause keep a lock taken?" in DESIGN.md.
    Paused,
}

/// Scripts compare it as a part of the owner token, and write none in front of it.
const TICKET: char = '@';

const PAUSE: char = '|';

/// Whether the value is a holder's, by its first byte: in front of others is a mark, or another program wrote them. An
/// empty one is no value.
pub(crate) fn is_of_holder(value: &[u8]) -> bool {
    value.first().is_none_or(|first| first.is_ascii_hexdigit() || *first == b'+')
}

pub(crate) fn is_pause(value: &[u8]) -> bool {
    value.first().is_some_and(|mark| char::from(*mark) == PAUSE)
}

/// The value without the `+` that its first waiter writes in front of an owner token which a command would delete. All
/// other values stay as they are: another program may have written them.
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
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.mark, Some(Mark::Kept | Mark::KeptForWaiters))
    }

    /// Whether the lock is done. The mark alone only says that it is kept, as by `min_hold`.
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

pub(crate) fn is_done(value: &[u8]) -> bool {
    let is_kept = matches!(value, [b'~' | b'=', ..]);
    let text = is_kept.then(|| std::str::from_utf8(value).ok()).flatten();
    text.and_then(TokenParts::parse).is_some_and(|parts| parts.is_done())
}

fn is_origin(text: &[u8]) -> bool {
    let is_hex = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    text.len() == ORIGIN_DIGITS && text.iter().all(is_hex)
}

const ORIGIN_DIGITS: usize = 16;

const ONCE: char = '!';

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

const RANDOM_DIGITS: usize = 10;

/// The year 2020: there was no lock of ours before.
const EARLIEST: u64 = 1_577_836_800_000_000;

/// The time, and above any number that this process had before.
pub(super) fn number_of_try() -> u64 {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    #[cfg(test)]
    if let Some(bits) = crate::core::process::seeded::bits() {
        return bits;
    }
    let now = micros();
    let next = |latest: u64| Some(now.max(latest.saturating_add(1)));
    let before = LATEST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    now.max(before.unwrap_or_default().saturating_add(1))
}

/// The number of a waiter: the time, and ten random digits, because another process, started from the same image, may
/// have the same origin for a while.
#[derive(Clone, Copy)]
pub(crate) struct NumberOfWaiter {
    micros: u64,
    random: u64,
}

impl NumberOfWaiter {
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
    if let Some(start) = crate::core::process::seeded::start() {
        let passed = tokio::time::Instant::now().saturating_duration_since(start);
        return EARLIEST + u64::try_from(passed.as_micros()).unwrap_or_default();
    }
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
