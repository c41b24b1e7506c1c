//! Releases that go together where many are asked for at once.
//!
//! See "When are releases batched?" in DESIGN.md.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::task::yield_now;

use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::script::{FreeAll, Handed, Release};
use crate::backend::{self, Attempt, Fault};
use crate::types::clock::boot_time;

/// So many releases may be on their way over one connection and each go alone, at once. Those that
/// come then are many, and gain more by company than they lose by looking around for it.
const MAX_UNBATCHED: usize = 8;

/// So many releases go together at most: about a sixth of a millisecond of the server's time.
const MAX_BATCH: usize = 64;

/// Whether the lock is free now, or was left as it is.
type Answer = Result<bool, Fault>;

/// The releases of one connection.
#[derive(Default)]
pub(crate) struct Releases {
    alone: AtomicUsize,
    /// What goes next, in the order of the calls. Whoever is the first sees to it that they are sent.
    company: Mutex<VecDeque<Waiting>>,
}

struct Waiting {
    attempt: Arc<Attempt>,
    answer: Sender<Answer>,
}

impl Releases {
    /// Nothing when as many go alone as may.
    fn go_alone(&self) -> Option<Alone<'_>> {
        let others = self.alone.fetch_add(1, Ordering::Relaxed);
        // Counts itself out again where it is one too many.
        let place = Alone(&self.alone);
        (others < MAX_UNBATCHED).then_some(place)
    }

    fn company(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        // Every change is one step, so a panic elsewhere leaves it sound.
        self.company.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that goes alone. Others only count them: nobody waits for a call that nobody polls.
struct Alone<'a>(&'a AtomicUsize);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Releases the attempt, alone or with others.
///
/// Whatever is more than freeing a lock goes alone, and so does one that came from a queue.
///
/// # Cancel safety
/// A release that is dropped may still be done; those that go with it are.
pub(crate) async fn release(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<backend::Release, Fault> {
    let goes_alone = attempt.has_min_hold() || attempt.had_turn() || connection.is_sharded();
    let _place = if goes_alone {
        None
    } else if let Some(place) = connection.releases().go_alone() {
        Some(place)
    } else {
        let answer = join(connection, attempt).await;
        if answer.unwrap_or_else(|_| Err(connection.runtime_ended()))? {
            return Ok(backend::Release::Released);
        }
        None
    };
    alone(connection, attempt, None).await.map(|(found, _)| found)
}

/// Releases the attempt, and queues another one in the same step, where there is one.
pub(crate) async fn alone(
    connection: &Connection,
    attempt: &Attempt,
    next: Option<&Attempt>,
) -> Result<(backend::Release, Handed), Fault> {
    // Asked anew for each request, because the rest of a minimum hold grows shorter.
    let kept_for = if attempt.has_min_hold() { attempt.kept_for(boot_time()) } else { None };
    connection.run(&Release { attempt, kept_for, next }).await
}

fn join(connection: &Arc<Connection>, attempt: &Arc<Attempt>) -> Receiver<Answer> {
    let (answer, answered) = oneshot::channel();
    let mut company = connection.releases().company();
    let is_first = company.is_empty();
    company.push_back(Waiting { attempt: Arc::clone(attempt), answer });
    drop(company);
    if is_first {
        // In a task of its own, because whoever came first may be dropped, or not be polled.
        let all = Company { connection: Arc::clone(connection), is_sent: false };
        drop(connection.runtime().spawn(async move {
            // Whoever is about to release as well does so before this goes on.
            yield_now().await;
            all.send();
        }));
    }
    answered
}

/// All who wait to be sent. Where the runtime ends before that, the end of their channels tells them.
struct Company {
    connection: Arc<Connection>,
    is_sent: bool,
}

impl Company {
    fn send(mut self) {
        self.is_sent = true;
        let mut all = self.take();
        while !all.is_empty() {
            let batch = all.drain(..all.len().min(MAX_BATCH)).collect();
            let together = together(Arc::clone(&self.connection), batch);
            drop(self.connection.runtime().spawn(together));
        }
    }

    fn take(&self) -> VecDeque<Waiting> {
        std::mem::take(&mut *self.connection.releases().company())
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        if !self.is_sent {
            drop(self.take());
        }
    }
}

async fn together(connection: Arc<Connection>, batch: Vec<Waiting>) {
    let attempts = batch.iter().map(|waiting| &*waiting.attempt).collect();
    let freed = connection.run_in_time(&FreeAll { attempts }).await;
    for (place, waiting) in batch.into_iter().enumerate() {
        let answer = match &freed {
            Ok(Ok(freed)) => Ok(freed.get(place).is_some_and(|is_free| *is_free)),
            // What the server refuses to do for all, it may do for each.
            Ok(Err(_)) if !connection.is_retired() => Ok(false),
            Ok(Err(fault)) | Err(fault) => Err(fault.clone()),
        };
        // Whoever gave up has handed the release over.
        drop(waiting.answer.send(answer));
    }
}
