//! Requests that go together where many are asked for at once.
//!
//! See "When are requests batched?" in DESIGN.md.

use std::collections::VecDeque;
use std::sync::Arc;

use ::redis::{Cmd, Pipeline, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::oneshot::{Receiver, Sender};
use tokio::task::yield_now;

use crate::backend::redis::wire::command;
use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::outbox::Request;
use crate::backend::redis::wire::script::{Call as _, FreeAll, is_unknown_script};
use crate::backend::{Attempt, Fault};

/// The replies to two commands that go together, alone or in a batch.
pub(crate) async fn pair(
    connection: &Arc<Connection>,
    commands: [Cmd; 2],
) -> Result<[Value; 2], Fault> {
    if let Some(_counted) = connection.outbox.alone() {
        let replies = connection.call(&command::pipeline(commands)).await?;
        return connection.two(replies, "`SET` and `INCR`");
    }
    let answer = join(connection, |answer| Request::Pair(commands, answer)).await;
    answer.unwrap_or_else(|_| Err(connection.runtime_ended()))
}

/// Whether the attempt's lock is free now; it may have been left as it is.
pub(crate) async fn free(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<bool, Fault> {
    let answer = join(connection, |answer| Request::Free(Arc::clone(attempt), answer)).await;
    answer.unwrap_or_else(|_| Err(connection.runtime_ended()))
}

fn join<T>(
    connection: &Arc<Connection>,
    request: impl FnOnce(Sender<T>) -> Request,
) -> Receiver<T> {
    let (answered, starts) = connection.outbox.join(request);
    if starts {
        // In a task of its own, because the call that came first may be dropped, or not be polled.
        let attendance = Attendance(Arc::clone(connection));
        drop(connection.runtime.spawn(attendance.send_all()));
    }
    answered
}

/// The task that sends what waits. Where the runtime ends before that, the requests' channels close.
struct Attendance(Arc<Connection>);

impl Attendance {
    async fn send_all(self) {
        let Self(connection) = &self;
        loop {
            // Tasks that are about to ask as well do so before this one continues.
            yield_now().await;
            let permit = if connection.outbox.is_full() {
                None
            } else {
                Arc::clone(&connection.outbox.batches).acquire_owned().await.ok()
            };
            let Some(batch) = connection.outbox.take() else { return };
            drop(connection.runtime.spawn(send(Arc::clone(connection), batch, permit)));
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.outbox.close();
    }
}

async fn send(
    connection: Arc<Connection>,
    batch: VecDeque<Request>,
    permit: Option<OwnedSemaphorePermit>,
) {
    let mut pipeline = Pipeline::with_capacity(2 * batch.len());
    let (mut pairs, mut freed) = (Vec::new(), Vec::new());
    for request in batch {
        match request {
            Request::Pair(commands, answer) => {
                commands.into_iter().for_each(|command| drop(pipeline.add_command(command)));
                pairs.push(answer);
            }
            Request::Free(attempt, answer) => freed.push((attempt, answer)),
        }
    }
    let free_all = FreeAll(freed.iter().map(|(attempt, _)| &**attempt).collect());
    if !freed.is_empty() {
        pipeline.add_command(connection.names.command(&free_all));
    }
    let replies = connection.call(&pipeline).await;
    drop(permit);
    match replies {
        Err(fault) => {
            pairs.into_iter().for_each(|answer| drop(answer.send(Err(fault.clone()))));
            freed.into_iter().for_each(|(_, answer)| drop(answer.send(Err(fault.clone()))));
        }
        Ok(replies) => {
            let mut replies = replies.into_iter();
            for answer in pairs {
                if let (Some(first), Some(second)) = (replies.next(), replies.next()) {
                    drop(answer.send(Ok([first, second])));
                }
            }
            if let Some(reply) = replies.next() {
                let outcome =
                    if is_unknown_script(&reply) { None } else { free_all.outcome(reply).ok() };
                for (place, (_, answer)) in freed.iter().enumerate() {
                    let _ = (place, answer, &outcome);
                }
                let outcome = outcome.unwrap_or_default();
                for (place, (_, answer)) in freed.into_iter().enumerate() {
                    drop(answer.send(Ok(outcome.get(place).is_some_and(|is_free| *is_free))));
                }
            }
        }
    }
}
