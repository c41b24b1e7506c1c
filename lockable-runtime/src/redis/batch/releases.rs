//! Releases: alone, or many in one command.
//!
//! See "When are acquisitions and releases batched?" in DESIGN.md.

use std::sync::Arc;

use super::requests;
use crate::core::backend::{self, Attempt, Reserved};
use crate::core::process::clock::boot_time;
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;
use crate::redis::wire::script;

/// Releases the attempt, alone or in a batch.
///
/// One command releases the lock if the server has one and no waiter has marked it. A release that does more than free
/// a lock is sent alone, and so is one that came from a queue.
///
/// # Cancel safety
/// A dropped release may still be done; the rest of its batch is.
pub(crate) async fn release(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<backend::Release, Failed> {
    let does_more = attempt.min_hold.is_set() || attempt.had_turn();
    let counted = connection.outbox.begin();
    let is_free = match connection.delete_of(attempt).filter(|_| !does_more) {
        // Boxed, as what follows: a release that joins a batch does not need the space.
        Some(delete) if counted.is_alone => Box::pin(connection.delete(&delete)).await?,
        None if counted.is_alone || does_more || connection.is_sharded() => false,
        delete => requests::free(connection, attempt, delete).await?,
    };
    if is_free {
        return Ok(backend::Release::Released);
    }
    Box::pin(release_one(connection, attempt, None)).await.map(|(found, _)| found)
}

pub(crate) async fn release_one(
    connection: &Connection,
    attempt: &Attempt,
    next: Option<&Attempt>,
) -> Result<(backend::Release, Option<Reserved>), Failed> {
    // Computed for each request, because the rest of a minimum hold grows shorter.
    let taken_for = attempt.min_hold.rest(boot_time);
    connection.run(script::release(&connection.names, attempt, taken_for, next)).await
}
