//! The gate that every acquisition of a locker passes, until the locker is drained.
//!
//! See "How does `drain` stop a locker's acquisitions?" in DESIGN.md.

use std::future::Future;
use std::pin::{Pin, pin};

use tokio::sync::Semaphore;

use crate::core::process::together::first_of;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;

pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(super) fn open() -> Self {
        // It has no permit, so that to acquire one is to wait until it is closed.
        Self(Semaphore::const_new(0))
    }

    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// # Errors
    /// When the locker was drained.
    pub(super) fn check(&self, key: &LockKey) -> Result<(), LockError> {
        if self.0.is_closed() { Err(LockError::drained(key.as_str())) } else { Ok(()) }
    }

    /// Waits as the call does, but no longer than the gate is open. A lock that the call is given just then is passed
    /// on.
    ///
    /// The caller pins the call: a future that is moved in here would take its space twice.
    ///
    /// # Errors
    /// Those of the call; and when the locker was drained.
    pub(super) async fn while_open<T>(
        &self,
        key: &LockKey,
        call: Pin<&mut impl Future<Output = Result<T, LockError>>>,
    ) -> Result<T, LockError> {
        let closed = pin!(async {
            drop(self.0.acquire().await);
            Err(LockError::drained(key.as_str()))
        });
        first_of(closed, call).await
    }
}
