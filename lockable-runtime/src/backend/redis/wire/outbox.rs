//! The requests of one connection that wait to be sent together.
//!
//! See "When are requests batched?" in DESIGN.md.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::redis::{Cmd, Value};
use tokio::sync::Semaphore;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::backend::{Attempt, Fault};

/// The most requests that one connection carries at the same time each by itself. More of them gain more by
/// going together than they lose by waiting for each other.
const MAX_ALONE: usize = 8;

/// The most batches that are under way at the same time and are not full: the server works on one while the
/// client works on the answers to the other.
const MAX_SMALL_BATCHES: usize = 2;

/// The most requests of a batch: about a sixth of a millisecond of the server's time.
const MAX_BATCH: usize = 64;

/// The requests that wait for the next batch, and how many are under way.
pub(crate) struct Outbox {
    alone: AtomicUsize,
    pub(crate) batches: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// In the order of the calls.
    requests: VecDeque<Request>,
    /// Whether a task sends what waits here.
    is_attended: bool,
}

/// A request that waits for its batch.
pub(crate) enum Request {
    /// Two commands, and where their replies go.
    Pair([Cmd; 2], Sender<Result<[Value; 2], Fault>>),
    /// A lock to be freed; the answer is whether it is free now, or was left as it is.
    Free(Arc<Attempt>, Sender<Result<bool, Fault>>),
}

/// A request that is sent by itself. Others only count it: none waits for a call that is not polled.
pub(crate) struct Alone<'a>(&'a AtomicUsize);

impl Outbox {
    pub(crate) fn new() -> Self {
        let batches = Arc::new(Semaphore::new(MAX_SMALL_BATCHES));
        Self { alone: AtomicUsize::new(0), batches, waiting: Mutex::default() }
    }

    /// `None` where as many requests are under way by themselves as may be.
    pub(crate) fn alone(&self) -> Option<Alone<'_>> {
        let others = self.alone.fetch_add(1, Ordering::Relaxed);
        // Counts itself out again where it is one too many.
        let counted = Alone(&self.alone);
        (others < MAX_ALONE).then_some(counted)
    }

    /// Puts a request into the next batch. Returns where its answer comes, and whether the caller has to
    /// start the task that sends it.
    pub(crate) fn join<T>(
        &self,
        request: impl FnOnce(Sender<T>) -> Request,
    ) -> (Receiver<T>, bool) {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting();
        waiting.requests.push_back(request(answer));
        let starts = !std::mem::replace(&mut waiting.is_attended, true);
        (answered, starts)
    }

    /// Whether a whole batch waits.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting().requests.len() >= MAX_BATCH
    }

    /// The next batch; none where no request waits, and the task ends.
    pub(crate) fn take(&self) -> Option<VecDeque<Request>> {
        let mut waiting = self.waiting();
        let count = waiting.requests.len().min(MAX_BATCH);
        waiting.is_attended = count > 0;
        let rest = waiting.requests.split_off(count);
        let batch = std::mem::replace(&mut waiting.requests, rest);
        (!batch.is_empty()).then_some(batch)
    }

    /// No task sends what waits any more: the channels of the requests close.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_attended = false;
        let dropped = std::mem::take(&mut waiting.requests);
        drop(waiting);
        drop(dropped);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Every change is one step, so a panic elsewhere leaves it sound.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
