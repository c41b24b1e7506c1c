//! The locks that the calling body holds already: a request for one of them could only wait for itself.
//!
//! See "Why is the lock not reentrant?" in DESIGN.md.

use std::cell::RefCell;

use crate::core::lease::Lease;
use crate::core::types::key::LockKey;

thread_local! {
    /// The leases of the bodies that are polled, or run, on this thread, the outermost first.
    static HELD: RefCell<Vec<Lease>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn holding<'a, R>(
    leases: impl Iterator<Item = &'a Lease>,
    step: impl FnOnce() -> R,
) -> R {
    let note = |held: &RefCell<Vec<Lease>>| {
        let mut held = held.borrow_mut();
        let before = held.len();
        held.extend(leases.cloned());
        held.len().saturating_sub(before)
    };
    // While the thread ends there is nothing to note them in, and nothing that could ask.
    let _held = Noted(HELD.try_with(note).unwrap_or_default());
    step()
}

/// Whether the caller runs inside of a body's poll that holds this key.
///
/// Siblings in `join!` and `select!`, and spawned tasks, do not. A body that continues without its lock may request it
/// again.
pub(crate) fn holds(store: &str, is_it: impl Fn(&LockKey) -> bool) -> bool {
    let is_this = |lease: &&Lease| is_it(lease.key()) && lease.context().backend.store() == store;
    let these = |held: &RefCell<Vec<Lease>>| -> Vec<Lease> {
        held.borrow().iter().filter(is_this).cloned().collect()
    };
    // A loss that is found here is reported outside of the list: a waker that hears of it may run a body.
    HELD.try_with(these).is_ok_and(|leases| leases.iter().any(|lease| !lease.is_lost()))
}

/// Removes this number of the innermost leases, also when the step panics.
struct Noted(usize);

impl Drop for Noted {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            // The lease is dropped after the list is unlocked.
            let _lease = HELD.try_with(|held| held.borrow_mut().pop());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::iter::once;
    use std::pin::pin;
    use std::sync::{Arc, mpsc};
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use super::*;
    use crate::core::backend::{Attempt, BackendContext};
    use crate::core::process::clock::skip;
    use crate::core::types::options::{Options, Ttl};

    /// Runs a body under this lease on the thread that wakes it.
    struct Body(Lease, mpsc::Sender<bool>);

    impl Wake for Body {
        fn wake(self: Arc<Self>) {
            self.1.send(holding(once(&self.0), || true)).unwrap();
        }
    }

    fn lease(key: &'static str, millis: u64) -> Lease {
        let ttl = Ttl::new("expire", Duration::from_millis(millis)).unwrap();
        let attempt = Arc::new(Attempt::drawn(LockKey::from_static(key), ttl));
        let context = Arc::new(BackendContext::in_memory());
        let options = Options { ttl, ..Options::default() };
        Lease::granted(attempt, &options, context)
    }

    /// Goal: a waker that hears of a loss may do anything, also when a call inside of the body finds it.
    /// Method: a waker that runs another body itself, as a runtime of another kind may.
    #[tokio::test(start_paused = true)]
    async fn a_loss_is_reported_outside_of_the_list() {
        let held = lease("k", 20);
        let (sender, ran) = mpsc::channel();
        let waker = Waker::from(Arc::new(Body(lease("other", 10_000), sender)));
        let mut lost = pin!(held.lost());
        assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        holding(once(&held), || {
            skip(held.remaining());
            assert!(!holds(held.context().backend.store(), |key| key == held.key()));
        });
        assert!(ran.recv().unwrap());
    }
}
