//! Requests of one connection that wait for their batch.
//!
//! See "When are acquisitions and releases batched?" in DESIGN.md.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::redis::{Cmd, Value};
use tokio::sync::oneshot::{self, Receiver, Sender};

use super::meaning::Failed;
use crate::core::backend::{Attempt, Fault, Renewal, Renewed};
use crate::core::process::mutex::Mutex;

/// While fewer requests than this are under way, each is sent alone. More of them gain more by a batch than they lose
/// by waiting.
const FEW: usize = 8;

/// The largest batch of acquisitions and releases. The 64 tasks of a busy service make two: the server works on one
/// while the client works on the other. Of 8, 16, 32 and 64 this was the fastest with them.
pub(crate) const MAX_BATCH: usize = 32;

pub(crate) enum QueuedRequest {
    Pair([Cmd; 2], Sender<Result<[Value; 2], Fault>>),
    /// Frees a lock by a script; the answer is whether it is free now, or was left as it is.
    Free(Arc<Attempt>, Sender<Result<bool, Fault>>),
    /// As `Free`, but by this command.
    Delete(Cmd, Sender<Result<bool, Fault>>),
}

/// A lock to confirm; the answer is what was found, which replicas have if it is held.
pub(crate) type Unconfirmed = (Renewal, Sender<Result<Renewed, Failed>>);

/// The requests for the next batch, and how many are under way in all.
pub(crate) struct Outbox<R = QueuedRequest> {
    under_way: AtomicUsize,
    waiting: Mutex<WaitingRequests<R>>,
}

struct WaitingRequests<R> {
    requests: VecDeque<R>,
    is_attended: bool,
}

/// A request that is under way. Others only count it: none waits for a call that is not polled.
pub(crate) struct UnderWay<'a> {
    count: &'a AtomicUsize,
    pub(crate) is_alone: bool,
}

impl<R> Outbox<R> {
    pub(crate) fn new() -> Self {
        let waiting = WaitingRequests { requests: VecDeque::new(), is_attended: false };
        Self { under_way: AtomicUsize::new(0), waiting: Mutex::new(waiting) }
    }

    pub(crate) fn begin(&self) -> UnderWay<'_> {
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay { count: &self.under_way, is_alone: others < FEW }
    }

    /// Adds a request to the next batch. The flag is whether the caller starts the task that sends it.
    pub(crate) fn join<T>(&self, request: impl FnOnce(Sender<T>) -> R) -> (Receiver<T>, bool) {
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        waiting.requests.push_back(request(answer));
        let starts = !mem::replace(&mut waiting.is_attended, true);
        (answered, starts)
    }

    /// The next batch, of at most `most` requests; if it is empty, the task that sends ends.
    pub(crate) fn next(&self, most: usize) -> VecDeque<R> {
        let mut waiting = self.waiting.lock();
        waiting.is_attended = !waiting.requests.is_empty();
        let rest = waiting.requests.len().min(most);
        let rest = waiting.requests.split_off(rest);
        mem::replace(&mut waiting.requests, rest)
    }

    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_attended = false;
        let requests = mem::take(&mut waiting.requests);
        // Outside of the lock: a channel that closes wakes its call.
        drop(waiting);
        drop(requests);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
