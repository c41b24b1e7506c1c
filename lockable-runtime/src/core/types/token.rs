//! The two tokens of a grant: who owns it, and how new it is.

use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::core::process::clock::Moment;
use crate::core::request_id::RequestId;
use crate::core::types::error::LockError;
use crate::core::types::id::ProcessId;
use crate::core::types::owner::{Origin, OwnerToken, ReleasedBy, number_of_try};

/// What the owner tokens of one locker begin with, except those of its waiters.
///
/// A locker serves the process that made it, and none that was forked from that. So no other process has the same
/// prefix, unless it was started from an image of this one, with the same randomness in memory: therefore a prefix is
/// drawn again for every call more than [`LONGEST_USE`] after the last draw.
///
/// See "What if two processes start from one VM image or snapshot?" in DESIGN.md.
#[derive(Debug)]
pub(crate) struct Prefix {
    process: ProcessId,
    origin: AtomicU64,
    /// At the earliest, by the clock of the backend.
    drawn: AtomicU64,
}

/// A call may be under way for as long anyway, while the image of its process is made.
const LONGEST_USE: Duration = Duration::from_millis(1);

impl Prefix {
    pub(crate) fn draw(now: Moment) -> Result<Self, LockError> {
        let process = ProcessId::current()?;
        let (origin, drawn) = (Origin::draw_in(process)?.0, now.as_nanos());
        Ok(Self { process, origin: AtomicU64::new(origin), drawn: AtomicU64::new(drawn) })
    }

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
    /// A token is far below [`i64::MAX`], the result for a larger one.
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
