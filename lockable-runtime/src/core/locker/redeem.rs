//! The ways to take over the lock of a ticket.

use std::future::Future;

use crate::core::acquire::redeem;
use crate::core::hold::guard::LockGuard;
use crate::core::hold::run::Run;
use crate::core::locker::request::LockRequest;
use crate::core::types::error::LockError;
use crate::core::types::ticket::Ticket;

impl LockRequest<Ticket> {
    /// Takes over the lock of the ticket, in one step: a ticket that is delivered twice is redeemed once.
    ///
    /// The lock lasts for this request's [`expire`](LockRequest::expire) from now, and the other options begin here.
    /// The fencing token is that of the ticket. The lock carries the [`RequestId`](crate::RequestId) that is current
    /// here, or else that of the first holder.
    ///
    /// # Errors
    /// - [`is_taken`](LockError::is_taken) when another holder has the lock: the ticket was redeemed before, or its
    ///   time is over. That holder may die, so do not acknowledge the message: come back later.
    /// - [`is_lost`](LockError::is_lost) alone when the lock has no holder: the message is late, its holder is done or
    ///   has died, or an operator released it. Acquire the lock by its key, and look whether the work is done.
    /// - [`is_unavailable`](LockError::is_unavailable) when the backend did not reply. The ticket may be valid, or not:
    ///   try again.
    /// - [`InvalidOption`](crate::LockErrorKind::InvalidOption), before anything is sent, for a ticket of another store
    ///   or of a key outside of this locker's prefix, and with [`wait`](LockRequest::wait) or
    ///   [`fair`](LockRequest::fair).
    /// - As [`acquire`](LockRequest::acquire) of one lock otherwise.
    ///
    /// # Cancel safety
    /// Dropping the future keeps no lock: as after an error, if a request that is still on its way takes the lock over,
    /// the background releases it.
    ///
    /// # Examples
    /// The worker of a queue, which acknowledges a message after `Ok`; `finish` looks whether the work is done, before
    /// it does it:
    /// ```
    /// # use std::time::Duration;
    /// # use lockable_runtime::{Locker, lock_key};
    /// # async fn finish(_order: u64) {}
    /// type Failure = Box<dyn std::error::Error>;
    ///
    /// async fn work(locker: &Locker, order: u64, ticket: &str) -> Result<(), Failure> {
    ///     match locker.redeem(ticket.parse()?).renew().run(finish(order)).await {
    ///         Err(error) if error.is_lost() && !error.is_taken() => {
    ///             let request = locker.lock(lock_key!("order:{order}")?).wait(Duration::ZERO);
    ///             Ok(request.renew().run(finish(order)).await?)
    ///         }
    ///         outcome => Ok(outcome?),
    ///     }
    /// }
    /// ```
    pub async fn acquire(self) -> Result<LockGuard, LockError> {
        let (acquirer, ticket, options) = self.redeeming().checked()?;
        redeem(&acquirer, &ticket, &options).await
    }

    /// Takes over the lock of the ticket, runs the body while the lease is held, and releases.
    ///
    /// # Errors
    /// As [`acquire`](LockRequest::<Ticket>::acquire), and as [`run`](LockRequest::run) of one lock.
    ///
    /// # Panics
    /// As [`run`](LockRequest::run).
    ///
    /// # Cancel safety
    /// As [`run`](LockRequest::run).
    pub async fn run<F: Future>(self, body: F) -> Result<F::Output, LockError> {
        Run::new(self.acquire(), body).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use crate::core::backend::BackendContext;
    use crate::core::locker::Locker;
    use crate::core::memory::Slow;
    use crate::core::types::options::Ttl;
    use crate::core::types::reporting::Reporting;

    #[tokio::test(start_paused = true)]
    async fn a_redeemed_lock_has_the_lease_of_its_locker() {
        let long = Duration::from_secs(60);
        let locker = Locker::builder().url("memory://").expire(long).connect_lazy().unwrap();
        let guard = locker.lock("k").acquire().await.unwrap();
        let ticket = guard.into_ticket(Duration::from_secs(10)).await.unwrap();
        let guard = locker.redeem(ticket).acquire().await.unwrap();
        assert!(guard.lease().remaining() > long / 2);
    }

    /// Goal: a body under a lock that the next primary does not know.
    #[tokio::test(start_paused = true)]
    async fn a_lock_of_a_server_that_was_left_is_not_redeemed() {
        let slow = Slow::open();
        let backend = Arc::new(Arc::clone(&slow));
        let context = BackendContext::new(backend, Duration::from_secs(1), Reporting::default());
        let locker = Locker::builder().on(context, Ttl::DEFAULT).unwrap();
        let guard = locker.lock("k").acquire().await.unwrap();
        let ticket = guard.into_ticket(Duration::from_secs(10)).await.unwrap();
        slow.is_left.store(true, Relaxed);
        let error = locker.redeem(ticket).acquire().await.unwrap_err();
        assert!(error.is_unavailable(), "{error}");
    }
}
