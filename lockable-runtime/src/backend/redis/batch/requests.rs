//! Requests that go together where many are asked for at once.
//!
//! See "When are requests batched?" in DESIGN.md.

use std::mem;
use std::sync::Arc;

use ::redis::{Cmd, Value};
use tokio::sync::oneshot::{Receiver, Sender};
use tokio::task::yield_now;

use crate::backend::redis::wire::command;
use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::outbox::{Batch, Request};
use crate::backend::redis::wire::script::{Call as _, FreeAll, is_unknown_script};
use crate::backend::{Attempt, Fault};

/// The replies to two commands that go together, which are named for the message.
///
/// # Cancel safety
/// Commands whose call is dropped may still be sent; the others of their batch are.
pub(crate) async fn pair(
    connection: &Arc<Connection>,
    commands: [Cmd; 2],
    names: &str,
) -> Result<[Value; 2], Fault> {
    let counted = connection.outbox.begin();
    if counted.is_alone {
        let pipeline = command::pipeline(commands);
        // Boxed, because a call that joins a batch does not need the space.
        let replies = Box::pin(connection.call(&pipeline)).await?;
        return connection.two(replies, names);
    }
    answer(connection, |answer| Request::Pair(commands, answer)).await
}

/// Frees the attempt's lock together with others; says whether it is free now, or was left as it is.
///
/// # Cancel safety
/// As [`pair`].
pub(crate) async fn free(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<bool, Fault> {
    answer(connection, |answer| Request::Free(Arc::clone(attempt), answer)).await
}

async fn answer<T>(
    connection: &Arc<Connection>,
    request: impl FnOnce(Sender<Result<T, Fault>>) -> Request,
) -> Result<T, Fault> {
    let answered = join(connection, request);
    answered.await.unwrap_or_else(|_| Err(connection.runtime_ended()))
}

/// No async fn, which would store the request for as long as the answer takes.
fn join<T>(
    connection: &Arc<Connection>,
    request: impl FnOnce(Sender<T>) -> Request,
) -> Receiver<T> {
    let (answered, starts) = connection.outbox.join(request);
    if starts {
        // In a task of its own, because the call that came first may be dropped, or not be polled.
        let sending = Sending(Arc::clone(connection));
        drop(connection.runtime.spawn(sending.send_all()));
    }
    answered
}

/// The task that sends what waits. Where the runtime ends before that, the channels of the requests close.
struct Sending(Arc<Connection>);

impl Sending {
    async fn send_all(self) {
        let Self(connection) = &self;
        loop {
            // Tasks that are about to ask as well do so before this one continues.
            yield_now().await;
            let Some(batch) = connection.outbox.next().await else { return };
            drop(connection.runtime.spawn(send(Arc::clone(connection), batch)));
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.outbox.close();
    }
}

/// What a batch is sent as, and where the answers go. A call that was dropped needs none.
#[derive(Default)]
struct Sorted {
    commands: Vec<Cmd>,
    pairs: Vec<Sender<Result<[Value; 2], Fault>>>,
    attempts: Vec<Arc<Attempt>>,
    frees: Vec<Sender<Result<bool, Fault>>>,
}

impl Sorted {
    fn from(requests: impl IntoIterator<Item = Request>) -> Self {
        let mut sorted = Self::default();
        for request in requests {
            match request {
                Request::Pair(commands, answer) => {
                    sorted.commands.extend(commands);
                    sorted.pairs.push(answer);
                }
                Request::Free(attempt, answer) => {
                    sorted.attempts.push(attempt);
                    sorted.frees.push(answer);
                }
            }
        }
        sorted
    }

    fn fail(self, fault: &Fault) {
        self.pairs.into_iter().for_each(|answer| drop(answer.send(Err(fault.clone()))));
        self.frees.into_iter().for_each(|answer| drop(answer.send(Err(fault.clone()))));
    }
}

async fn send(connection: Arc<Connection>, batch: Batch) {
    let mut sorted = Sorted::from(batch.requests);
    let free_all = FreeAll(&sorted.attempts);
    let frees = (!sorted.frees.is_empty()).then(|| connection.names.command(&free_all));
    let commands = mem::take(&mut sorted.commands).into_iter().chain(frees);
    let replies = connection.call_as(&command::pipeline(commands), batch.turn).await;
    let mut replies = match replies {
        Ok(replies) => replies.into_iter(),
        Err(fault) => return sorted.fail(&fault),
    };
    for answer in sorted.pairs {
        let pair = [(); 2].map(|()| replies.next().unwrap_or(Value::Nil));
        drop(answer.send(Ok(pair)));
    }
    if let Some(reply) = replies.next() {
        let freed = freed(&connection, &FreeAll(&sorted.attempts), reply).await;
        for (place, answer) in sorted.frees.into_iter().enumerate() {
            let is_free = |freed: &Vec<bool>| freed.get(place).is_some_and(|is_free| *is_free);
            drop(answer.send(freed.as_ref().map(is_free).map_err(Clone::clone)));
        }
    }
}

/// Whether each of the locks is free now. What the server refuses to do for all, it may do for each.
async fn freed(
    connection: &Connection,
    free_all: &FreeAll<'_>,
    reply: Value,
) -> Result<Vec<bool>, Fault> {
    let outcome = if is_unknown_script(&reply) {
        connection.run(free_all).await
    } else {
        free_all.outcome(reply).map_err(|error| connection.fault(&error))
    };
    match outcome {
        Err(fault) if connection.is_retired() => Err(fault),
        outcome => Ok(outcome.unwrap_or_default()),
    }
}
