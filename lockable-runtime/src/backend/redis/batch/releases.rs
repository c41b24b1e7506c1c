//! Releases, which share a command where many are asked for at once.
//!
//! See "When are releases batched?" in DESIGN.md.

use std::sync::Arc;

use tokio::sync::oneshot::Receiver;
use tokio::task::yield_now;

use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::pending::{Answer, Pending};
use crate::backend::redis::wire::script::{FreeAll, HandedOff, Release};
use crate::backend::{self, Attempt, Fault};
use crate::types::clock::boot_time;

/// The most releases in one command: about a sixth of a millisecond of the server's time.
const MAX_BATCH: usize = 64;

/// Releases the attempt, alone or in a batch.
///
/// A release that does more than free a lock is sent alone, and so is one that came from a queue.
///
/// # Cancel safety
/// A release that is dropped may still be done; the others of its batch are.
pub(crate) async fn release(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<backend::Release, Fault> {
    let is_single = attempt.min_hold.is_set() || attempt.had_turn() || connection.is_sharded();
    let counted = if is_single { None } else { connection.releases.unbatched() };
    if !is_single && counted.is_none() {
        let answer = join(connection, attempt).await;
        if answer.unwrap_or_else(|_| Err(connection.runtime_ended()))? {
            return Ok(backend::Release::Released);
        }
    }
    release_one(connection, attempt, None).await.map(|(found, _)| found)
}

/// Releases the attempt, and queues another one in the same step, where there is one.
pub(crate) async fn release_one(
    connection: &Connection,
    attempt: &Attempt,
    next: Option<&Attempt>,
) -> Result<(backend::Release, HandedOff), Fault> {
    // Computed for each request, because the rest of a minimum hold grows shorter.
    let taken_for = attempt.min_hold.rest(boot_time);
    connection.run(&Release { attempt, taken_for, next }).await
}

fn join(connection: &Arc<Connection>, attempt: &Arc<Attempt>) -> Receiver<Answer> {
    let (answered, is_first) = connection.releases.join(attempt);
    if is_first {
        // In a task of its own, because the call that came first may be dropped, or not be polled.
        let next = NextBatch(Some(Arc::clone(connection)));
        drop(connection.runtime.spawn(async move {
            // Tasks that are about to release as well do so before this one continues.
            yield_now().await;
            next.send();
        }));
    }
    answered
}

/// The releases that wait to be sent; none once they are. Where the runtime ends before that, their
/// channels close.
struct NextBatch(Option<Arc<Connection>>);

impl NextBatch {
    fn send(mut self) {
        let Some(connection) = self.0.take() else { return };
        let mut all = connection.releases.take();
        while !all.is_empty() {
            let batch = all.drain(..all.len().min(MAX_BATCH)).collect();
            drop(connection.runtime.spawn(send_batch(Arc::clone(&connection), batch)));
        }
    }
}

impl Drop for NextBatch {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            drop(connection.releases.take());
        }
    }
}

async fn send_batch(connection: Arc<Connection>, batch: Vec<Pending>) {
    let attempts = batch.iter().map(|pending| &*pending.attempt).collect();
    let freed = connection.run_in_time(&FreeAll(attempts)).await;
    for (place, pending) in batch.into_iter().enumerate() {
        let answer = match &freed {
            Ok(Some(freed)) => Ok(freed.get(place).is_some_and(|is_free| *is_free)),
            // What the server refuses to do for all, it may do for each.
            Ok(None) => Ok(false),
            Err(fault) => Err(fault.clone()),
        };
        // A call that gave up waiting has deferred its release.
        drop(pending.answer.send(answer));
    }
}
