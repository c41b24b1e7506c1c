//! Confirmations by replicas: locks that arrive during one `WAIT` share the next.
//!
//! See "How does `replicas` confirm a lock (`WAIT`)?" in DESIGN.md.

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use ::redis::{RedisError, Value};

use super::requests::behind_others;
use crate::core::backend::{Fault, Renewal, Renewed};
use crate::redis::wire::command::{asking, pipeline};
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;
use crate::redis::wire::outbox::Unconfirmed;
use crate::redis::wire::script::{self, Found, ScriptCall};

type Outcome = Result<Renewed, Failed>;

/// The most locks that one script reads, during which the server does nothing else.
const MAX_BATCH: usize = 256;

/// Checks the lock, and if it is held, waits until enough replicas have it for as long as the renewal says.
///
/// This connection did not write it, and may lead to another server. What is confirmed is what this server and its
/// replicas have.
///
/// # Cancel safety
/// A dropped confirmation may still be sent; the rest of its group is.
pub(crate) async fn confirm(
    connection: &Arc<Connection>,
    renewal: &Renewal,
) -> Result<Renewed, Failed> {
    let (answered, starts) = connection.confirmations.join(|answer| (renewal.clone(), answer));
    if starts {
        let confirming = Confirming { connection: Arc::clone(connection), is_over: false };
        drop(connection.runtime.spawn(confirming.send_all()));
    }
    answered.await.unwrap_or_else(|_| Err(connection.runtime_ended().into()))
}

/// As [`confirm`], but sends the request alone, to a node to which the lock's slot only moves.
pub(crate) async fn confirm_moving(
    connection: &Connection,
    renewal: &Renewal,
) -> Result<Renewed, Failed> {
    let ScriptCall { command, read } = script::confirm(&connection.names, slice::from_ref(renewal));
    let commands = [asking(), command, connection.wait()];
    let mut replies = connection.call_in_time(&pipeline(commands)).await?;
    let counted = counted(connection, replies.pop());
    let found = read(replies.pop().unwrap_or(Value::Nil));
    // One lock has one outcome.
    outcomes(connection, 1, found, &counted).pop().unwrap_or(Ok(Renewed::Absent))
}

/// The task that sends the waiting requests. If the runtime ends first, their channels close.
struct Confirming {
    connection: Arc<Connection>,
    is_over: bool,
}

impl Confirming {
    /// One group after the other: during `WAIT` the server answers nothing else on the connection.
    async fn send_all(mut self) {
        loop {
            behind_others().await;
            let group = self.connection.confirmations.next(usize::MAX);
            self.is_over = group.is_empty();
            if self.is_over {
                return;
            }
            send(&self.connection, group).await;
        }
    }
}

impl Drop for Confirming {
    fn drop(&mut self) {
        // Where it is over, another task may attend to the next ones already.
        if !self.is_over {
            self.connection.confirmations.close();
        }
    }
}

async fn send(connection: &Connection, group: VecDeque<Unconfirmed>) {
    let open = group.into_iter().filter(|(_, answer)| !answer.is_closed());
    let (renewals, answers): (Vec<_>, Vec<_>) = open.unzip();
    if renewals.is_empty() {
        return;
    }
    let confirmed = confirm_all(connection, &renewals).await;
    for (number, answer) in answers.into_iter().enumerate() {
        let outcome = match &confirmed {
            // Each lock has an outcome.
            Ok(outcomes) => outcomes.get(number).cloned().unwrap_or(Ok(Renewed::Absent)),
            Err(fault) => Err(fault.clone().into()),
        };
        drop(answer.send(outcome));
    }
}

async fn confirm_all(connection: &Connection, renewals: &[Renewal]) -> Result<Vec<Outcome>, Fault> {
    let is_sharded = connection.is_sharded();
    let size = if is_sharded { 1 } else { MAX_BATCH };
    let calls = renewals.chunks(size).map(|some| script::confirm(&connection.names, some));
    let last = [connection.wait()];
    let sent = connection.in_time(connection.run_each(calls.collect(), &last)).await;
    // A connection that gives no answer in time is not used again.
    let (found, mut replies) = sent.inspect_err(|_| connection.retire())?;
    let counted = counted(connection, replies.pop());
    let each = renewals.chunks(size).zip(found);
    let confirmed =
        each.flat_map(|(some, found)| outcomes(connection, some.len(), found, &counted));
    let confirmed = confirmed.collect();
    if connection.is_sharded() && !is_sharded {
        // What the server refuses to do for all, it may do for each.
        return Box::pin(confirm_all(connection, renewals)).await;
    }
    Ok(confirmed)
}

fn counted(connection: &Connection, reply: Option<Value>) -> Result<(), Failed> {
    connection.waited(&reply.unwrap_or(Value::Nil)).map_err(Failed::from)
}

fn outcomes(
    connection: &Connection,
    count: usize,
    found: Result<Found, RedisError>,
    counted: &Result<(), Failed>,
) -> Vec<Outcome> {
    let one = |found| match found {
        Ok(Renewed::Held) => counted.clone().map(|()| Renewed::Held),
        Ok(gone @ (Renewed::Absent | Renewed::Taken)) => Ok(gone),
        Err(error) => Err(connection.failed(&error)),
    };
    match found {
        Ok(found) => found.into_iter().map(one).collect(),
        Err(error) => {
            let failed = connection.failed(&error);
            vec![Err(failed); count]
        }
    }
}
