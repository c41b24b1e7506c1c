//! The two tokens of a grant: who owns it, and how new it is.

use std::error::Error;
use std::fmt::{self, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::request_id::RequestId;
use crate::types::clock::Moment;
use crate::types::error::LockError;
#[cfg(feature = "redis")]
use crate::types::owner::ORIGIN_DIGITS;
use crate::types::owner::{ONCE, ProcessId, TICKET, number_of_try};
use crate::types::random::random;

/// The text stored under a lock key: proves that one acquisition, and no other, is the holder's.
///
/// It reads `<16 hex digits>.<number>`, and ` <request id>` behind that where there is one. The first six digits are
/// the process, and the number begins with the time of the attempt: [`TokenParts`] reads them. The point is a hyphen
/// where its holder [releases by a command](ReleasedBy::Command). Behind the number of a `once` call is a `!`.
///
/// Never shown in messages or logs: to know it is enough to release the lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerToken(String);

impl OwnerToken {
    /// Makes a token that no other acquisition has.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn draw(identity: Option<&RequestId>) -> Result<Self, LockError> {
        Ok(Self::at(Origin::draw()?, number_of_try(), identity))
    }

    /// How its holder releases the lock.
    #[cfg(feature = "redis")]
    pub(crate) fn released_by(&self) -> ReleasedBy {
        let is_command = self.0.as_bytes().get(ORIGIN_DIGITS) == Some(&b'-');
        if is_command { ReleasedBy::Command } else { ReleasedBy::Script }
    }

    /// The token of this origin and number. No other token of the origin may have the number.
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

    /// The same as the token of a `once` call, which its script recognizes.
    ///
    /// See "How does `once` tell a completed run from a busy lock?" in DESIGN.md.
    pub(crate) fn of_once(mut self) -> Self {
        let end = self.0.find(' ').unwrap_or(self.0.len());
        debug_assert!(self.0.find('-').is_none_or(|at| at > end), "a command keeps no lock taken");
        self.0.insert(end, ONCE);
        self
    }

    /// The same acquisition once a ticket has its lock. No holder has this token, and scripts release it.
    pub(crate) fn of_ticket(&self) -> Self {
        Self(format!("{TICKET}{}", self.0))
    }

    pub(crate) fn is_of_once(&self) -> bool {
        self.0.split(' ').next().is_some_and(|acquisition| acquisition.ends_with(ONCE))
    }

    /// A token that the backend sent, or that was in a ticket.
    pub(crate) fn received(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// How the holder of an owner token releases its lock.
///
/// See "When does one `DELEX` or `DELIFEQ` release a lock?" in DESIGN.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleasedBy {
    /// By a script, which looks at the queue.
    Script,
    /// By a command that deletes the lock if it has this owner token and no waiter has marked it. Only such a token is
    /// ever marked.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis has the command"))]
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

/// What the owner tokens of one locker begin with, except those of its waiters.
///
/// A locker serves the process that made it and no process that was forked from that. So no other process
/// has the same prefix, unless it was started from an image of this one. Then both have the same randomness
/// in memory: therefore the prefix is drawn again for every call that comes more than [`LONGEST_USE`] after
/// the last draw.
///
/// See "What if two processes start from one VM image or snapshot?" in DESIGN.md.
#[derive(Debug)]
pub(crate) struct Prefix {
    process: ProcessId,
    origin: AtomicU64,
    /// When that was drawn, at the earliest, by the clock of the backend.
    drawn: AtomicU64,
}

/// A call may be under way for as long anyway, while the image of its process is made.
const LONGEST_USE: Duration = Duration::from_millis(1);

impl Prefix {
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn draw(now: Moment) -> Result<Self, LockError> {
        let process = ProcessId::current()?;
        let (Origin(origin), drawn) = (Origin::draw_in(process)?, now.as_nanos());
        Ok(Self { process, origin: AtomicU64::new(origin), drawn: AtomicU64::new(drawn) })
    }

    /// Makes a token that no other acquisition has.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn token(
        &self,
        now: Moment,
        released_by: ReleasedBy,
        identity: Option<&RequestId>,
    ) -> Result<OwnerToken, LockError> {
        Ok(OwnerToken::written(self.origin(now)?, released_by, number_of_try(), identity))
    }

    fn origin(&self, now: Moment) -> Result<Origin, LockError> {
        // The time is read first: the origin that is read after it was drawn then, or later.
        let drawn = Moment::from_nanos(self.drawn.load(Ordering::Acquire));
        let origin = self.origin.load(Ordering::Acquire);
        if now.since(drawn) <= LONGEST_USE {
            return Ok(Origin(origin));
        }
        let fresh = Origin::draw_in(self.process)?;
        // An origin that another thread has stored meanwhile is as fresh.
        let set = Ordering::AcqRel;
        let order = Ordering::Acquire;
        match self.origin.compare_exchange(origin, fresh.0, set, order) {
            Ok(_) => {
                self.drawn.store(now.as_nanos(), Ordering::Release);
                Ok(fresh)
            }
            Err(other) => Ok(Origin(other)),
        }
    }
}

/// What the tokens of one locker's waiters begin with, and the address that their wake-ups are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin(u64);

impl Origin {
    /// An origin that no other locker has, in any process.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(crate) fn draw() -> Result<Self, LockError> {
        Self::draw_in(ProcessId::current()?)
    }

    /// The same in this process, which was asked for before.
    fn draw_in(process: ProcessId) -> Result<Self, LockError> {
        random().map(|bits| Self(process.origin(bits)))
    }

    /// The origin of a token that this crate made.
    #[cfg(any(feature = "redis", test))]
    pub(crate) fn of(owner: &OwnerToken) -> Option<Self> {
        let (origin, _) = owner.as_ref().split_once('.')?;
        u64::from_str_radix(origin, 16).ok().map(Self)
    }

    /// Whether a token has this origin.
    pub(crate) fn is_of(self, owner: &str) -> bool {
        owner.split_once('.').is_some_and(|(origin, _)| origin == self.to_string())
    }
}

/// Sixteen hexadecimal digits.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
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

/// A number that grows with every grant of a key.
///
/// A resource that remembers the highest token it has seen and rejects smaller ones is safe from a holder that was
/// paused past its lease. A token that is not checked protects nothing: [`fencing`](crate::fencing) has the checks.
///
/// # What this does not guarantee
/// Tokens of different keys are not comparable, and the numbers have gaps. A token that was read from a text or a
/// number proves no grant: use it for comparisons only.
///
/// # Examples
/// The second grant of a key has the greater token:
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let first = locker.lock("order:7").acquire().await?;
/// let older = first.lease().fencing_token();
/// first.release().await?;
/// let second = locker.lock("order:7").acquire().await?;
/// assert!(second.lease().fencing_token() > older);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
///
/// Stored as a text or as a number, and read again. With the feature `serde`, serialized data has the number, which
/// stays below 2<sup>53</sup> until the year 2255, so that JavaScript reads it exactly:
/// ```
/// # fn example() -> Result<(), lockable_runtime::FencingTokenError> {
/// use lockable_runtime::FencingToken;
///
/// let token: FencingToken = "1750000000000001".parse()?;
/// assert_eq!(token.to_string(), "1750000000000001");
/// let column: i64 = token.as_i64();
/// assert_eq!(FencingToken::try_from(column)?, token);
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

// See "What exactly do fencing tokens guarantee?" in DESIGN.md.
impl FencingToken {
    pub(crate) fn new(value: u64) -> Self {
        Self(value)
    }

    /// Returns the token as a signed number, such as for a column of type `BIGINT`.
    ///
    /// A token is microseconds since 1970 and a counter, far below [`i64::MAX`]; a larger one would become that.
    #[must_use]
    pub fn as_i64(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

/// Reads what [`as_i64`](FencingToken::as_i64) returned, such as the value of a column.
impl TryFrom<i64> for FencingToken {
    type Error = FencingTokenError;

    /// # Errors
    /// When the number is negative.
    fn try_from(number: i64) -> Result<Self, FencingTokenError> {
        u64::try_from(number).map(Self).map_err(|_| FencingTokenError(()))
    }
}

/// Reads what [`Display`](fmt::Display) wrote.
impl FromStr for FencingToken {
    type Err = FencingTokenError;

    /// # Errors
    /// When the text is no whole number, is negative, or does not fit 64 bits.
    fn from_str(text: &str) -> Result<Self, FencingTokenError> {
        text.parse().map(Self).map_err(|_| FencingTokenError(()))
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text or a number that cannot be a [`FencingToken`].
///
/// # Examples
/// ```
/// use lockable_runtime::FencingToken;
///
/// let error = FencingToken::try_from(-1).unwrap_err();
/// assert_eq!(error.to_string(), "a fencing token is a whole number from 0 to 18446744073709551615");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencingTokenError(());

impl fmt::Display for FencingTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fencing token is a whole number from 0 to {}", u64::MAX)
    }
}

impl Error for FencingTokenError {}

#[cfg(test)]
mod tests;
