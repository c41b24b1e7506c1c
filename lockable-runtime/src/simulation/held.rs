//! What a call holds: one lock, which may be a permit, or several.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::core::acquire::{Acquirer, Tried, acquire, acquire_all};
use crate::core::hold::grant::Grant;
use crate::core::hold::guard::LockGuard;
use crate::core::hold::set::{Leases, LockSet};
use crate::core::hold::ticket::IntoTicketError;
use crate::core::lease::Lease;
use crate::core::locker::request::LockRequest;
use crate::core::process::clock::tokio_time;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::Options;
use crate::core::types::ticket::Ticket;

type Answer<T> = Pin<Box<dyn Future<Output = Result<T, LockError>> + Send>>;

type Passing = Pin<Box<dyn Future<Output = Result<Ticket, IntoTicketError>> + Send>>;

pub(super) trait Held: Grant {
    fn acquire(
        acquirer: Arc<Acquirer>,
        keys: Vec<LockKey>,
        options: Options,
    ) -> Answer<Tried<Self>>;

    fn leases(shown: &Self::Lease) -> Vec<Lease>;

    fn redeem(acquirer: Arc<Acquirer>, ticket: Ticket, options: Options) -> Answer<Self>;

    fn pass(self, period: Duration) -> Passing;

    /// Releases it, or leaves it done for this period.
    fn release(self, kept: Option<Duration>) -> Answer<()>;
}

impl Held for LockGuard {
    fn acquire(
        acquirer: Arc<Acquirer>,
        keys: Vec<LockKey>,
        options: Options,
    ) -> Answer<Tried<Self>> {
        let start = tokio_time();
        Box::pin(async move { acquire(&acquirer, keys[0].clone(), &options, start).await })
    }

    fn leases(shown: &Lease) -> Vec<Lease> {
        vec![shown.clone()]
    }

    fn redeem(acquirer: Arc<Acquirer>, ticket: Ticket, options: Options) -> Answer<Self> {
        Box::pin(LockRequest::<Ticket>::new(acquirer, Ok(ticket), 0, options).acquire())
    }

    fn pass(self, period: Duration) -> Passing {
        Box::pin(self.into_ticket(period))
    }

    fn release(self, kept: Option<Duration>) -> Answer<()> {
        match kept {
            Some(period) => Box::pin(self.keep(period)),
            None => Box::pin(LockGuard::release(self)),
        }
    }
}

impl Held for LockSet {
    fn acquire(
        acquirer: Arc<Acquirer>,
        keys: Vec<LockKey>,
        options: Options,
    ) -> Answer<Tried<Self>> {
        Box::pin(async move { acquire_all(&acquirer, keys, &options).await })
    }

    fn leases(shown: &Leases) -> Vec<Lease> {
        shown.to_vec()
    }

    fn redeem(_: Arc<Acquirer>, _: Ticket, _: Options) -> Answer<Self> {
        unreachable!("a ticket has one lock")
    }

    fn pass(self, _: Duration) -> Passing {
        unreachable!("a ticket has one lock")
    }

    fn release(self, _: Option<Duration>) -> Answer<()> {
        Box::pin(LockSet::release(self))
    }
}
