//! Renewals in one command, or one by one where the server refuses that.

use std::slice;

use ::redis::RedisError;

use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::script::Renew;
use crate::backend::{Fault, Renewal, Renewed};
use crate::types::error::LockErrorKind;

/// Returns an outcome for each: what the server refuses for one lease fails no other.
///
/// # Errors
/// When the connection broke, or leads away from where these locks are now.
///
/// # Cancel safety
/// Renewals that are dropped may still be done.
pub(crate) async fn renew(
    connection: &Connection,
    renewals: &[Renewal],
) -> Result<Vec<Result<Renewed, Fault>>, Fault> {
    if renewals.len() > 1 && !connection.is_sharded() {
        match connection.run(&Renew(renewals)).await {
            Ok(outcomes) => return each(connection, outcomes),
            Err(fault) if connection.is_retired() => return Err(fault),
            // It may do later what it cannot do now; one command for each would load it more.
            Err(fault) if fault.kind == LockErrorKind::Unavailable && !connection.is_sharded() => {
                return Err(fault);
            }
            // What the server refuses to do for all, it may do for each.
            Err(_) => {}
        }
    }
    let single: Vec<_> = renewals.iter().map(|one| Renew(slice::from_ref(one))).collect();
    let outcomes = connection.run_each(&single).await?;
    // One renewal has one outcome.
    let only = |outcome: Result<_, _>| outcome.unwrap_or_else(|error| vec![Err(error)]);
    each(connection, outcomes.into_iter().flat_map(only))
}

/// Each outcome with its fault; where all failed because this connection leads to the wrong server, that
/// is no outcome of theirs.
fn each(
    connection: &Connection,
    outcomes: impl IntoIterator<Item = Result<Renewed, RedisError>>,
) -> Result<Vec<Result<Renewed, Fault>>, Fault> {
    let fault = |error: RedisError| connection.fault(&error);
    let outcomes: Vec<_> = outcomes.into_iter().map(|outcome| outcome.map_err(fault)).collect();
    match outcomes.first() {
        Some(Err(fault)) if connection.is_retired() && outcomes.iter().all(Result::is_err) => {
            Err(fault.clone())
        }
        _ => Ok(outcomes),
    }
}
