//! The two tokens of a grant: who owns it, and how new it is.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use once_cell::sync::Lazy;

/// The text stored under a lock key: proves that one acquisition, and no other, is the holder's.
///
/// Never shown in messages or logs, because whoever knows it can release the lock.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct OwnerToken(String);

impl OwnerToken {
    /// Makes a token that no other acquisition has: 64 random bits of this process and a counter.
    pub(crate) fn next() -> Self {
        // The standard library seeds `RandomState` from the operating system.
        static PROCESS: Lazy<u64> = Lazy::new(|| RandomState::new().hash_one(std::process::id()));
        static COUNTER: AtomicU64 = AtomicU64::new(1);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(format!("{:016x}.{count}", *PROCESS))
    }
}

impl AsRef<str> for OwnerToken {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(hidden)")
    }
}

/// A number that grows with every grant of a key.
///
/// A resource that remembers the highest token it has seen and refuses smaller ones is safe from a
/// holder that was paused past its lease. Tokens that nobody checks protect nothing.
///
/// # What this does not guarantee
/// Tokens of different keys say nothing about each other, and the numbers have gaps.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let first = locker.lock("order:7").acquire().await?;
/// let older = first.fencing_token();
/// first.release().await?;
/// let second = locker.lock("order:7").acquire().await?;
/// assert!(second.fencing_token() > older);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(value: u64) -> Self {
        Self(value)
    }
}

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_tokens_differ_and_are_plain_ascii() {
        let (first, second) = (OwnerToken::next(), OwnerToken::next());
        assert_ne!(first, second);
        assert!(first.as_ref().bytes().all(|byte| byte.is_ascii_graphic()));
    }

    #[test]
    fn owner_tokens_do_not_show_themselves() {
        let token = OwnerToken::next();
        assert!(!format!("{token:?}").contains(token.as_ref()));
    }
}
