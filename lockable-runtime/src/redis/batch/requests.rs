//! Requests that are sent together under load.
//!
//! See "When are acquisitions and releases batched?" in DESIGN.md.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use ::redis::{Cmd, Pipeline, Value};
use tokio::sync::oneshot::{Receiver, Sender};

use crate::core::backend::{Attempt, Fault};
use crate::redis::wire::connection::Connection;
use crate::redis::wire::outbox::{MAX_BATCH, QueuedRequest};
use crate::redis::wire::script::{self, ScriptCall};

/// The replies to two commands, sent alone or in a batch.
///
/// # Cancel safety
/// Dropped commands may still be sent; the rest of their batch is.
///
/// No async fn, which would store the commands while it waits.
pub(crate) fn pair(
    connection: &Arc<Connection>,
    commands: [Cmd; 2],
) -> impl Future<Output = Result<[Value; 2], Fault>> + use<'_> {
    let counted = connection.outbox.begin();
    // Boxed, because a call that joins a batch does not need the space.
    let replies = if counted.is_alone {
        Ok(Box::pin(connection.two(commands)))
    } else {
        Err(join(connection, |answer| QueuedRequest::Pair(commands, answer)))
    };
    async move {
        let _counted = counted;
        match replies {
            Ok(alone) => alone.await,
            Err(joined) => joined.await.unwrap_or_else(|_| Err(connection.runtime_ended())),
        }
    }
}

/// Frees the attempt's lock together with others, by `command` if given; returns whether it is free now, or was left as
/// it is.
///
/// # Cancel safety
/// As [`pair`].
pub(crate) async fn free(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
    delete: Option<Cmd>,
) -> Result<bool, Fault> {
    let request = |answer| match delete {
        Some(delete) => QueuedRequest::Delete(delete, answer),
        None => QueuedRequest::Free(Arc::clone(attempt), answer),
    };
    answer(connection, request).await
}

async fn answer<T>(
    connection: &Arc<Connection>,
    request: impl FnOnce(Sender<Result<T, Fault>>) -> QueuedRequest,
) -> Result<T, Fault> {
    let answered = join(connection, request);
    answered.await.unwrap_or_else(|_| Err(connection.runtime_ended()))
}

fn join<T>(
    connection: &Arc<Connection>,
    request: impl FnOnce(Sender<T>) -> QueuedRequest,
) -> Receiver<T> {
    let (answered, starts) = connection.outbox.join(request);
    if starts {
        // In a task of its own, because the call that came first may be dropped, or not be polled.
        let sending = SendTask { connection: Arc::clone(connection), is_over: false };
        drop(connection.runtime.spawn(sending.send_all()));
    }
    answered
}

/// The task that sends the waiting requests. If the runtime ends first, their channels close.
struct SendTask {
    connection: Arc<Connection>,
    is_over: bool,
}

impl SendTask {
    async fn send_all(mut self) {
        loop {
            // Tasks that are about to ask as well do so before this one continues.
            behind_others().await;
            let requests = self.connection.outbox.next(MAX_BATCH);
            self.is_over = requests.is_empty();
            if self.is_over {
                return;
            }
            let connection = Arc::clone(&self.connection);
            drop(self.connection.runtime.spawn(send(connection, requests)));
        }
    }
}

impl Drop for SendTask {
    fn drop(&mut self) {
        // Where it is over, another task may attend to the next requests already.
        if !self.is_over {
            self.connection.outbox.close();
        }
    }
}

/// Lets the tasks run that the runtime has queued already.
///
/// Tokio's `yield_now` waits longer: until the worker has polled for events, a system call, and meanwhile no other
/// worker may run the task.
pub(super) fn behind_others() -> impl Future<Output = ()> {
    let mut is_behind = false;
    poll_fn(move |cx| {
        if is_behind {
            return Poll::Ready(());
        }
        is_behind = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A batch as it is sent, and where the answers go.
struct Sorted {
    /// Two for each pair, followed by one for each deletion.
    commands: Pipeline,
    pairs: Vec<Sender<Result<[Value; 2], Fault>>>,
    deletions: Vec<Sender<Result<bool, Fault>>>,
    attempts: Vec<Arc<Attempt>>,
    frees: Vec<Sender<Result<bool, Fault>>>,
}

impl Sorted {
    fn new(requests: VecDeque<QueuedRequest>) -> Self {
        let count = requests.len();
        let mut commands = Pipeline::with_capacity(2 * count + 1);
        let mut pairs = Vec::with_capacity(count);
        let (mut deletes, mut deletions) = (Vec::new(), Vec::new());
        let mut attempts = Vec::with_capacity(count);
        let mut frees = Vec::with_capacity(count);
        for request in requests {
            match request {
                // Its call was dropped, so nothing may be acquired for it any more.
                QueuedRequest::Pair(_, answer) if answer.is_closed() => {}
                QueuedRequest::Pair([first, second], answer) => {
                    commands.add_command(first).add_command(second);
                    pairs.push(answer);
                }
                QueuedRequest::Free(attempt, answer) => {
                    attempts.push(attempt);
                    frees.push(answer);
                }
                QueuedRequest::Delete(delete, answer) => {
                    deletes.push(delete);
                    deletions.push(answer);
                }
            }
        }
        for delete in deletes {
            commands.add_command(delete);
        }
        Self { commands, pairs, deletions, attempts, frees }
    }

    fn fail(self, fault: &Fault) {
        self.pairs.into_iter().for_each(|answer| drop(answer.send(Err(fault.clone()))));
        let frees = self.deletions.into_iter().chain(self.frees);
        frees.for_each(|answer| drop(answer.send(Err(fault.clone()))));
    }
}

async fn send(connection: Arc<Connection>, batch: VecDeque<QueuedRequest>) {
    let mut sorted = Sorted::new(batch);
    let ScriptCall { command, read } = script::free_all(&connection.names, &sorted.attempts);
    if !sorted.frees.is_empty() {
        sorted.commands.add_command(command);
    }
    if sorted.commands.is_empty() {
        return;
    }
    let mut replies = match connection.call_in_time(&sorted.commands).await {
        Ok(replies) => replies.into_iter(),
        Err(fault) => return sorted.fail(&fault),
    };
    for answer in sorted.pairs {
        // Each command has a reply.
        let (Some(first), Some(second)) = (replies.next(), replies.next()) else { return };
        drop(answer.send(Ok([first, second])));
    }
    for answer in sorted.deletions {
        let Some(reply) = replies.next() else { return };
        drop(answer.send(deleted(&connection, &reply)));
    }
    if let Some(reply) = replies.next() {
        // What the server refuses to do for all, it may do for each.
        let freed = match read(reply).map_err(|error| connection.fault(&error)) {
            Err(fault) if connection.is_retired() => Err(fault),
            freed => Ok(freed.unwrap_or_default()),
        };
        for (endpoint, answer) in sorted.frees.into_iter().enumerate() {
            let is_free = |freed: &Vec<bool>| freed.get(endpoint).is_some_and(|is_free| *is_free);
            drop(answer.send(freed.as_ref().map(is_free).map_err(Clone::clone)));
        }
    }
}

/// Whether a lock is free now; if the server refuses the command, the script tries once more.
fn deleted(connection: &Connection, reply: &Value) -> Result<bool, Fault> {
    match connection.deleted(reply).map_err(|error| connection.fault(&error)) {
        Err(fault) if connection.is_retired() => Err(fault),
        outcome => Ok(outcome.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::Ttl;

    #[test]
    fn every_call_of_a_batch_hears_why_it_failed() {
        let (pair, mut paired) = oneshot::channel();
        let (free, mut freed) = oneshot::channel();
        let (delete, mut deleted) = oneshot::channel();
        let attempt = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
        let batch = Sorted::new(VecDeque::from([
            QueuedRequest::Free(attempt, free),
            QueuedRequest::Pair([Cmd::new(), Cmd::new()], pair),
            QueuedRequest::Delete(Cmd::new(), delete),
        ]));
        batch.fail(&Fault::unavailable("no answer"));
        let reasons = [
            paired.try_recv().unwrap().map(drop),
            freed.try_recv().unwrap().map(drop),
            deleted.try_recv().unwrap().map(drop),
        ];
        assert_eq!(reasons.map(|reason| reason.unwrap_err().message), ["no answer"; 3]);
    }
}
