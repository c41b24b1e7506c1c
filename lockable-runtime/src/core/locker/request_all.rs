//! The ways to acquire several locks.

use std::future::Future;

use crate::core::acquire::acquire_all;
use crate::core::hold::run::Run;
use crate::core::hold::set::LockSet;
use crate::core::locker::request::{Acquire, LockRequest};
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;

impl LockRequest<Vec<LockKey>> {
    /// Acquires all of the locks; while another holder has one of them, the call waits in the FIFO queue of that one.
    ///
    /// The call takes the locks in the order of their texts, and holds the smaller ones, renewed, while it waits. So
    /// calls for [several keys](crate::guide::several_keys#what-a-call-does) never wait for each other in a circle.
    /// [`max_hold`](LockRequest::max_hold) and [`min_hold`](LockRequest::min_hold) count from when the last lock is
    /// there. If a lock is lost meanwhile, all are released, and the call begins again, at most four times.
    ///
    /// # What this does not guarantee
    /// A program that acquires the same keys one by one, in another order, can wait in a circle with this call, until
    /// limits or leases end that.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::acquire) of one lock; the error names its key, and no lock is held then. Also:
    ///
    /// - [`InvalidKey`](crate::LockErrorKind::InvalidKey), before anything is sent, without a key or with more than 64.
    /// - [`is_unavailable`](LockError::is_unavailable) when locks were lost in five attempts while the call waited for
    ///   others, or a lease of which a third is over cannot be renewed when the last lock is there.
    /// - [`is_revoked`](LockError::is_revoked) when an operator asked the holder to stop meanwhile.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the queue; the background releases the locks that it has.
    pub async fn acquire(self) -> Result<LockSet, LockError> {
        let explain = self.explain();
        let (acquirer, keys, options) = self.checked()?;
        // Boxed, because it is far larger than a call for one lock.
        let tried = Box::pin(acquire_all(&acquirer, keys, &options)).await;
        tried.and_then(|tried| tried.granted().map_err(|busy| busy.error())).map_err(explain)
    }

    /// Acquires all of the locks in one try; the error [`is_busy`](LockError::is_busy) when another holder has one of
    /// them.
    ///
    /// It tries one key after the other, in the order of their texts, and releases what it has before it returns. So of
    /// calls that overlap one has all of its locks.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::<Vec<LockKey>>::acquire) of several locks and
    /// [`try_acquire`](LockRequest::try_acquire) of one.
    ///
    /// # Cancel safety
    /// As [`acquire`](LockRequest::<Vec<LockKey>>::acquire).
    pub async fn try_acquire(self) -> Result<LockSet, LockError> {
        self.trying().acquire().await
    }

    /// Acquires all of the locks, runs the body while all leases are held, and releases.
    ///
    /// If one of the locks is lost, revoked or held for `max_hold`, the body is stopped, and the others are released
    /// before the call returns.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::<Vec<LockKey>>::acquire), and as [`run`](LockRequest::run) of one lock; the error
    /// names its key.
    ///
    /// # Panics
    /// As [`run`](LockRequest::run).
    ///
    /// # Cancel safety
    /// As [`run`](LockRequest::run).
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        Run::new(self.acquire(), body).await
    }

    /// Acquires all of the locks in one try and runs the body as [`run`](LockRequest::<Vec<LockKey>>::run) does; busy
    /// ones are the error [`is_busy`](LockError::is_busy).
    ///
    /// # Errors
    /// As [`try_acquire`](LockRequest::<Vec<LockKey>>::try_acquire) and [`run`](LockRequest::<Vec<LockKey>>::run).
    ///
    /// # Panics
    /// As [`run`](LockRequest::<Vec<LockKey>>::run).
    ///
    /// # Cancel safety
    /// As [`run`](LockRequest::<Vec<LockKey>>::run).
    pub async fn try_run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        self.trying().run(body).await
    }
}

impl Acquire for Vec<LockKey> {
    type Granted = LockSet;

    async fn acquire(request: LockRequest<Self>) -> Result<LockSet, LockError> {
        request.acquire().await
    }
}
