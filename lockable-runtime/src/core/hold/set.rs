//! Several locks that are held together.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::core::hold::grant::{Grant, first_lost};
use crate::core::hold::guard::LockGuard;
use crate::core::hold::ticket::Passed;
use crate::core::lease::Lease;
use crate::core::process::together::join_all;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::ticket::Ticket;

/// Several held locks, released together when this is dropped.
///
/// Each is a lock of its own: a call for one of the keys excludes, and is excluded.
///
/// # What this does not guarantee
/// As with a [`LockGuard`], code under a set that is held by hand is not stopped when a lock is lost: check
/// [`is_held`](Leases::is_held), wait for [`lost`](Leases::lost), or let [`run`](crate::LockRequest::run) or the
/// attribute hold the locks. If one lock is lost, the others stay held until this is dropped or released.
///
/// # Cancel safety
/// As dropping a [`LockGuard`](LockGuard#cancel-safety), it defers the releases to a background thread.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let locks = locker.lock_all(["account:7", "account:3"]).acquire().await?;
/// let leases = locks.leases();
/// println!("writing with {} and {}", leases[0].fencing_token(), leases[1].fencing_token());
/// locks.release().await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[must_use = "the locks are released when the set is dropped, and `let _ =` drops it at once: bind it to a name, such as `let _locks`"]
pub struct LockSet {
    /// One for each key, in the order in which the keys are written first.
    pub(super) guards: Vec<LockGuard>,
    leases: Leases,
}

impl LockSet {
    pub(crate) fn new(mut guards: Vec<LockGuard>, keys: &[LockKey]) -> Self {
        guards.sort_by_key(|guard| keys.iter().position(|key| key == guard.lease.key()));
        let of = |key: &LockKey| guards.iter().find(|guard| guard.lease.key() == key);
        let leases = keys.iter().filter_map(of).map(|guard| guard.lease.clone()).collect();
        Self { guards, leases: Leases(leases) }
    }

    /// Returns the leases of the locks: their keys and fencing tokens, how long they last, and how to extend them.
    ///
    /// A clone of them may outlive the set, and does not hold the locks.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Releases all locks at the same time, and waits until that is done, at most one command deadline.
    ///
    /// With `min_hold` they stay taken until that is over, but the call returns at once.
    ///
    /// # Errors
    /// The first error in the order of the keys, as of [`LockGuard::release`]. The other locks are released all the
    /// same.
    ///
    /// # Cancel safety
    /// When the future is dropped, the releases continue in the background.
    pub async fn release(self) -> Result<(), LockError> {
        join_all(self.guards.into_iter().map(LockGuard::release)).await.into_iter().collect()
    }
}

impl LockSet {
    /// Ends the hold here, and leaves each lock taken for `ttl`, for the process that redeems its ticket.
    ///
    /// As [`LockGuard::into_ticket`] of each lock, all at the same time; the tickets are in the order of the keys, and
    /// of equal keys there is one. Each is redeemed by itself, in any order.
    ///
    /// # Errors
    /// The first error in the order of the keys. All locks are released then.
    ///
    /// # Cancel safety
    /// When the future is dropped, the locks are released in the background.
    pub async fn into_tickets(self, ttl: Duration) -> Result<Vec<Ticket>, LockError> {
        let made = join_all(self.guards.into_iter().map(|guard| guard.pass(ttl))).await;
        // After an error the tickets that were made are dropped here, which releases their locks.
        let made = made.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (tickets, passed): (_, Vec<_>) = made.into_iter().unzip();
        passed.into_iter().for_each(Passed::stays);
        Ok(tickets)
    }
}

impl Grant for LockSet {
    type Lease = Leases;

    fn shown(&self) -> &Leases {
        &self.leases
    }

    fn guards(&self) -> &[LockGuard] {
        &self.guards
    }

    fn end(self) -> impl Future<Output = ()> + Send {
        end_all(self.guards)
    }
}

/// Releases what is still held.
pub(crate) async fn end_all(mut guards: Vec<LockGuard>) {
    guards.retain(|guard| !guard.lease.is_lost());
    join_all(guards.into_iter().map(LockGuard::finish)).await;
}

impl fmt::Debug for LockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockSet").field(&self.guards).finish()
    }
}

/// The leases of several locks that are held together, in the order in which their keys were written.
///
/// `guard = name` beside `keys` in [`distributed_lock`](crate::distributed_lock) binds them, and [`LockSet::leases`]
/// returns them. They are a slice; equal keys have the same lease at both places.
#[derive(Clone, Debug)]
pub struct Leases(Arc<[Lease]>);

impl Leases {
    /// Returns whether the holder may still rely on all of the locks, as by [`Lease::is_held`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns how long the holder may still rely on all of the locks, as by [`Lease::remaining`]; zero when it may
    /// not.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.iter().map(Lease::remaining).min().unwrap_or_default()
    }

    /// Waits until the holder may no longer rely on one of the locks; returns the error, with its key and the reason.
    ///
    /// It returns when [`Lease::lost`] of one of them does, and never once the locks were released.
    ///
    /// # Cancel safety
    /// Nothing is missed: if a lock is lost already, the next call returns at once.
    pub async fn lost(&self) -> LockError {
        first_lost(self.iter()).await
    }

    /// Makes all leases last for `duration` from now, each unless it lasts longer anyway.
    ///
    /// # Errors
    /// The first error in the order of the keys, as of [`Lease::extend`]. The other leases are extended all the same.
    ///
    /// # Cancel safety
    /// As [`Lease::extend`].
    pub async fn extend(&self, duration: Duration) -> Result<(), LockError> {
        join_all(self.iter().map(|lease| lease.extend(duration))).await.into_iter().collect()
    }
}

impl Deref for Leases {
    type Target = [Lease];

    fn deref(&self) -> &[Lease] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Leases {
    type Item = &'a Lease;
    type IntoIter = std::slice::Iter<'a, Lease>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        fn check<T: Send + Sync + Unpin + 'static>() {}
        check::<LockSet>();
        check::<Leases>();
    }
}
