//! The releases of one connection that are not answered yet.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::backend::{Attempt, Fault};

/// The most releases that one connection carries at the same time each as a command of its own. More
/// of them gain more by sharing a command than they lose by waiting for each other.
const MAX_UNBATCHED: usize = 8;

/// Whether the lock is free now, or was left as it is.
pub(crate) type Answer = Result<bool, Fault>;

/// The releases of one connection that are sent and unanswered, or wait for the next batch.
#[derive(Default)]
pub(crate) struct PendingReleases {
    unbatched: AtomicUsize,
    /// The next batch, in the order of the calls. The call that finds it empty has it sent.
    batch: Mutex<VecDeque<Pending>>,
}

/// A release that waits for its batch.
pub(crate) struct Pending {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) answer: Sender<Answer>,
}

/// A release that is sent as a command of its own. Others only count it: none waits for a call that is
/// not polled.
pub(crate) struct Unbatched<'a>(&'a AtomicUsize);

impl PendingReleases {
    /// `None` where as many are unbatched as may be.
    pub(crate) fn unbatched(&self) -> Option<Unbatched<'_>> {
        let others = self.unbatched.fetch_add(1, Ordering::Relaxed);
        // Counts itself out again where it is one too many.
        let counted = Unbatched(&self.unbatched);
        (others < MAX_UNBATCHED).then_some(counted)
    }

    /// Puts a release into the next batch; also returns whether it is the first one there.
    pub(crate) fn join(&self, attempt: &Arc<Attempt>) -> (Receiver<Answer>, bool) {
        let (answer, answered) = oneshot::channel();
        let mut batch = self.batch();
        let is_first = batch.is_empty();
        batch.push_back(Pending { attempt: Arc::clone(attempt), answer });
        (answered, is_first)
    }

    pub(crate) fn take(&self) -> VecDeque<Pending> {
        std::mem::take(&mut *self.batch())
    }

    fn batch(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        // Every change is one step, so a panic elsewhere leaves it sound.
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Unbatched<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
