//! What a command runs under: one lock, which may be a permit, or several.

use std::slice;
use std::time::Duration;

use lockable_runtime::{FencingToken, Lease, LockError, LockGuard, LockSet, Locker};

use crate::arguments::{Permits, Run, Wait};

pub(crate) enum Held {
    /// The lock of a key, or one of its permits.
    One(LockGuard),
    /// The locks of several keys.
    Several(LockSet),
    /// All permits of a key.
    All(LockSet),
}

/// The options that a request for one lock and one for several have in common. A limit of zero is one try.
macro_rules! with_options {
    ($request:expr, $arguments:ident) => {{
        let mut request = $request.expire($arguments.expire.0).renew();
        if let Some(least) = $arguments.min_hold {
            request = request.min_hold(least.0);
        }
        if $arguments.fair {
            request = request.fair();
        }
        match $arguments.wait {
            None => request.wait(Duration::ZERO),
            Some(Wait::AtMost(limit)) => request.wait(limit.0),
            Some(Wait::Forever) => request,
        }
    }};
}

impl Held {
    /// Acquires what the command is to run under.
    pub(super) async fn acquire(locker: &Locker, arguments: &Run) -> Result<Self, LockError> {
        let held = match (arguments.keys.as_slice(), arguments.permits) {
            ([key], Some(Permits::All(count))) => {
                let request = locker.lock(key).all_permits(count);
                Self::All(with_options!(request, arguments).acquire().await?)
            }
            ([key], permits) => {
                let mut request = locker.lock(key);
                if let Some(Permits::OneOf(count)) = permits {
                    request = request.permits(count);
                }
                if arguments.once.is_some() {
                    request = request.once();
                }
                Self::One(with_options!(request, arguments).acquire().await?)
            }
            (keys, _) => {
                let request = locker.lock_all(keys);
                Self::Several(with_options!(request, arguments).acquire().await?)
            }
        };
        // A lease that came by the queue is short until its first renewal.
        if held.remaining() < arguments.expire.0 / 10 * 9 {
            held.extend(arguments.expire.0).await?;
        }
        Ok(held)
    }

    pub(super) fn leases(&self) -> &[Lease] {
        match self {
            Self::One(guard) => slice::from_ref(guard.lease()),
            Self::Several(locks) | Self::All(locks) => locks.leases(),
        }
    }

    /// One for each key, in the order of the keys. All permits of a key are one call: its newest token refuses those of
    /// all calls before it.
    pub(super) fn tokens(&self) -> Vec<FencingToken> {
        let tokens = self.leases().iter().map(Lease::fencing_token);
        if matches!(self, Self::All(_)) {
            tokens.max().into_iter().collect()
        } else {
            tokens.collect()
        }
    }

    pub(super) fn remaining(&self) -> Duration {
        self.leases().iter().map(Lease::remaining).min().unwrap_or_default()
    }

    pub(super) async fn lost(&self) -> LockError {
        match self {
            Self::One(guard) => guard.lease().lost().await,
            Self::Several(locks) | Self::All(locks) => locks.leases().lost().await,
        }
    }

    async fn extend(&self, expire: Duration) -> Result<(), LockError> {
        match self {
            Self::One(guard) => guard.lease().extend(expire).await,
            Self::Several(locks) | Self::All(locks) => locks.leases().extend(expire).await,
        }
    }

    /// Releases; one lock may stay taken for so long, because its run is done.
    pub(super) async fn release(self, done_for: Option<Duration>) -> Result<(), LockError> {
        match (self, done_for) {
            (Self::One(guard), Some(period)) => guard.keep(period).await,
            (Self::One(guard), None) => guard.release().await,
            (Self::Several(locks) | Self::All(locks), _) => locks.release().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_several_leases_the_first_that_ends_counts() {
        let locker = Locker::builder().url("memory://").connect_lazy().unwrap();
        let locks = locker.lock_all(["a", "b"]).expire(Duration::from_secs(10));
        let locks = locks.acquire().await.unwrap();
        locks.leases()[1].extend(Duration::from_secs(60)).await.unwrap();
        let held = Held::Several(locks);
        assert!(held.remaining() <= Duration::from_secs(10), "{:?}", held.remaining());
    }
}
