//! What a call holds while its body runs: one lock, or several.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::slice;
use std::task::Poll;

use crate::core::hold::guard::LockGuard;
use crate::core::lease::Lease;
use crate::core::types::error::LockError;
use crate::core::types::options::OnLost;

pub(crate) type Over = Pin<Box<dyn Future<Output = LockError> + Send>>;

/// One held lock, or several.
#[doc(hidden)]
pub trait Grant: Sized + Send + 'static {
    /// What the body sees.
    type Lease: Clone + Send + Sync + 'static;

    /// What the body sees.
    fn shown(&self) -> &Self::Lease;

    /// The guard of each lock.
    fn guards(&self) -> &[LockGuard];

    /// The release at the end of a body; a failure is logged.
    fn end(self) -> impl Future<Output = ()> + Send;

    /// The lease of each lock.
    fn each(&self) -> impl Iterator<Item = &Lease> {
        self.guards().iter().map(|guard| &guard.lease)
    }

    /// Ready when a lease is over, except those that a body finishes without.
    fn over(&self) -> Pin<Box<dyn Future<Output = LockError> + Send>> {
        first_lost(self.each().filter(|lease| is_watched(lease)))
    }

    /// Runs a step of the body in the span of the hold.
    fn in_span<R>(&self, step: impl FnOnce() -> R) -> R {
        match self.guards().first() {
            Some(guard) => guard.in_scope(step),
            None => step(),
        }
    }
}

impl Grant for LockGuard {
    type Lease = Lease;

    fn shown(&self) -> &Lease {
        &self.lease
    }

    fn guards(&self) -> &[LockGuard] {
        slice::from_ref(self)
    }

    fn end(self) -> impl Future<Output = ()> + Send {
        self.finish()
    }
}

/// Whether the end of this lease stops its body: one that finishes without its lock has none to lose.
pub(crate) fn is_watched(lease: &Lease) -> bool {
    lease.on_lost() == OnLost::Cancel || !lease.is_lost()
}

/// The error of the first of these leases that is over.
pub(crate) fn first_lost<'a>(leases: impl Iterator<Item = &'a Lease>) -> Over {
    let loss = |lease: &Lease| -> Over {
        let lease = lease.clone();
        Box::pin(async move { lease.lost().await })
    };
    let mut losses: Vec<_> = leases.map(loss).collect();
    if losses.len() == 1 {
        return losses.remove(0);
    }
    Box::pin(poll_fn(move |cx| {
        let found = losses.iter_mut().map(|loss| loss.as_mut().poll(cx)).find(Poll::is_ready);
        found.unwrap_or(Poll::Pending)
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::core::backend::{Attempt, BackendContext};
    use crate::core::types::key::LockKey;
    use crate::core::types::options::{Options, Ttl};

    #[tokio::test(start_paused = true)]
    async fn of_several_leases_the_first_to_end_is_noticed() {
        for [first, second, third] in [[20, 60, 60], [60, 20, 60], [60, 60, 20]] {
            let context = Arc::new(BackendContext::in_memory());
            let lease = |key, seconds| {
                let ttl = Ttl::new("expire", Duration::from_secs(seconds)).unwrap();
                let attempt = Arc::new(Attempt::drawn(LockKey::from_static(key), ttl));
                let options = Options { ttl, ..Options::default() };
                Lease::granted(attempt, &options, Arc::clone(&context))
            };
            let leases = [lease("a", first), lease("b", second), lease("c", third)];
            let error = first_lost(leases.iter()).await;
            let is_lost = leases.map(|lease| lease.is_lost());
            assert_eq!(is_lost, [first, second, third].map(|seconds| seconds == 20), "{error}");
        }
    }
}
