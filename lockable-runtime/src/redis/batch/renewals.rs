//! Renewals: in one command, or one by one if the server refuses that.

use std::sync::Arc;

use ::redis::RedisError;

use crate::core::backend::{Renewal, Renewed};
use crate::core::types::error::LockErrorKind;
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;
use crate::redis::wire::script::{self, Found};
use crate::redis::wire::tracking::{Reads, Shown};

type Outcome = Result<Renewed, Failed>;

/// Renews; returns an outcome for each: a lease that the server refuses fails no other. On a connection that tracks,
/// later changes by others are reported.
///
/// # Errors
/// When the connection broke, or leads away from where these locks are now.
///
/// # Cancel safety
/// Dropped renewals may still be done.
pub(crate) async fn renew(
    connection: &Connection,
    renewals: &[Renewal],
) -> Result<Vec<Outcome>, Failed> {
    let (mut outcomes, shown) = send(connection, renewals).await?;
    if shown == Shown::Gone {
        // Deleted between the renewal and the read, which no one will hear of.
        let looks: Vec<_> = renewals.iter().map(look).collect();
        find_gone(&mut outcomes, send(connection, &looks).await?.0);
    }
    Ok(outcomes)
}

/// A check extends no lease: what it finds held stays as the renewal found it.
fn find_gone(outcomes: &mut [Outcome], looked: Vec<Outcome>) {
    for (outcome, looked) in outcomes.iter_mut().zip(looked) {
        if matches!(looked, Ok(Renewed::Absent | Renewed::Taken)) {
            *outcome = looked;
        }
    }
}

fn look(renewal: &Renewal) -> Renewal {
    Renewal { ttl: None, attempt: Arc::clone(&renewal.attempt) }
}

async fn send(
    connection: &Connection,
    renewals: &[Renewal],
) -> Result<(Vec<Outcome>, Shown), Failed> {
    if renewals.len() > 1 && !connection.is_sharded() {
        let (asked, shown) = run(connection, renewals, renewals.len()).await?;
        // One call has one outcome.
        for outcomes in asked {
            match outcomes.map_err(|error| connection.failed(&error)) {
                Ok(outcomes) => return Ok((each(connection, outcomes)?, shown)),
                Err(failed) if connection.is_retired() => return Err(failed),
                // It may do later what it cannot do now; one command for each would load it more.
                Err(failed)
                    if failed.fault.kind == LockErrorKind::Unavailable
                        && !connection.is_sharded() =>
                {
                    return Err(failed);
                }
                // What the server refuses to do for all, it may do for each.
                Err(_) => {}
            }
        }
    }
    let (asked, shown) = run(connection, renewals, 1).await?;
    // One renewal has one outcome.
    let only = |outcome: Result<_, _>| outcome.unwrap_or_else(|error| vec![Err(error)]);
    Ok((each(connection, asked.into_iter().flat_map(only))?, shown))
}

async fn run(
    connection: &Connection,
    renewals: &[Renewal],
    size: usize,
) -> Result<(Vec<Asked>, Shown), Failed> {
    let reads = if connection.tracks() {
        Reads::of(renewals, size == renewals.len())
    } else {
        Reads::none()
    };
    let calls = renewals.chunks(size).map(|some| script::renew(&connection.names, some));
    let (asked, replies) = connection.run_each(calls.collect(), reads.commands()).await?;
    let shown = reads.shown(replies, asked.iter().flat_map(are_there));
    if shown == Shown::Refused {
        connection.tracks_nothing();
    }
    Ok((asked, shown))
}

fn are_there(asked: &Asked) -> Vec<bool> {
    let is_there = |found: &Result<_, _>| matches!(found, Ok(Renewed::Held | Renewed::Taken));
    asked.as_ref().map_or(vec![false], |found| found.iter().map(is_there).collect())
}

type Asked = Result<Found, RedisError>;

/// Each outcome with its fault; an error if all failed because this connection leads to the wrong server.
fn each(
    connection: &Connection,
    outcomes: impl IntoIterator<Item = Result<Renewed, RedisError>>,
) -> Result<Vec<Outcome>, Failed> {
    let failed = |error: RedisError| connection.failed(&error);
    let outcomes: Vec<_> = outcomes.into_iter().map(|outcome| outcome.map_err(failed)).collect();
    match outcomes.first() {
        Some(Err(failed)) if connection.is_retired() && outcomes.iter().all(Result::is_err) => {
            Err(failed.clone())
        }
        _ => Ok(outcomes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::backend::Fault;

    #[test]
    fn a_look_counts_as_no_renewal() {
        let refused = || Err(Failed::from(Fault::unavailable("no memory")));
        for (looked, is_refused) in
            [(Renewed::Held, true), (Renewed::Absent, false), (Renewed::Taken, false)]
        {
            let mut outcomes = [refused()];
            find_gone(&mut outcomes, vec![Ok(looked)]);
            assert_eq!(outcomes[0].is_err(), is_refused, "{looked:?}");
        }
    }

    /// The server counts keys, not holders.
    #[test]
    fn a_lock_of_another_holder_is_there() {
        let found = [Renewed::Held, Renewed::Taken, Renewed::Absent];
        let asked: Asked = Ok(found.into_iter().map(Ok).collect());
        assert_eq!(are_there(&asked), [true, true, false]);
    }
}
