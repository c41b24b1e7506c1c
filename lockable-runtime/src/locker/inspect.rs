//! Who has a lock.

use std::time::Duration;

use crate::backend::{Held, Link};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::slot::Slot;
use crate::types::token::identity_of;

/// The holder of a lock, as [`Locker::inspect`](crate::Locker::inspect) found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Not the owner token, which is enough to release the lock.
    identity: Option<String>,
    remaining: Option<Duration>,
}

impl Holder {
    /// The [request id](crate::RequestId) under which the lock was acquired; `None` when that was
    /// outside of any request, or by another library.
    #[must_use]
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// How long the lock lasts by the backend's clock; `None` is without an end, which another
    /// program must have set.
    ///
    /// A lock that was released before its `min_hold` was over has its last holder until then.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    pub(crate) fn of(held: &Held) -> Self {
        let identity = identity_of(&held.owner).map(ToOwned::to_owned);
        Self { identity, remaining: held.remaining }
    }
}

/// Asks for the holder of a lock, within one command deadline.
pub(crate) async fn inspect(link: &Link, key: LockKey) -> Result<Option<Holder>, LockError> {
    let name = key.clone();
    let held = link.ask(Slot::of(&key), link.backend.inspect(key)).await;
    let held = held.map_err(|fault| fault.about(&name, &link.reporting))?;
    Ok(held.as_ref().map(Holder::of))
}
