//! A backend as one locker uses it: its command deadline, its reporting, and the check for a fork.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::{AcquireReply, Attempt, Backend, Fault, Reply};
use crate::core::process::Process;
#[cfg(lockable_internals)]
use crate::core::process::clock::Moment;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::reporting::Reporting;
use crate::core::types::slot::Slot;

pub(crate) struct BackendContext {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) command_deadline: Duration,
    pub(crate) reporting: Reporting,
    process: Process,
    stage: Option<Arc<dyn TestStage>>,
    #[cfg(lockable_internals)]
    recheck_delay: Duration,
}

impl BackendContext {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        command_deadline: Duration,
        reporting: Reporting,
    ) -> Self {
        Self {
            backend,
            command_deadline,
            reporting,
            process: Process::current(),
            stage: None,
            #[cfg(lockable_internals)]
            recheck_delay: Duration::ZERO,
        }
    }

    #[cfg(test)]
    pub(crate) fn in_memory() -> Self {
        let backend = Arc::new(crate::core::memory::Memory::open("").unwrap());
        Self::new(backend, Duration::from_secs(1), Reporting::default())
    }

    pub(crate) fn staged(mut self, stage: Arc<dyn TestStage>) -> Self {
        self.stage = Some(stage);
        self
    }

    /// Whether the process was forked since: then nothing may be sent, because the connections are the parent's, and no
    /// mutex be locked, because a thread of the parent may have locked it for ever.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.process.is_current()
    }

    /// # Errors
    /// When the context was inherited from the process that this one was forked from.
    pub(crate) fn usable_here(&self) -> Result<(), LockError> {
        if self.is_inherited() { Err(LockError::forked()) } else { Ok(()) }
    }

    /// # Errors
    /// As [`usable_here`](Self::usable_here).
    pub(crate) fn backend_here(&self) -> Result<&Arc<dyn Backend>, LockError> {
        self.usable_here().map(|()| &self.backend)
    }

    /// Lets lines query that much later without a wake-up: for tests of what serves their calls before.
    #[cfg(lockable_internals)]
    pub(crate) fn rechecked_later(mut self, delay: Duration) -> Self {
        self.recheck_delay = delay;
        self
    }

    #[cfg(lockable_internals)]
    pub(crate) fn queries_at(&self, due: Moment, now: Moment) -> Moment {
        if due > now { due.after(self.recheck_delay) } else { due }
    }

    /// As [`Query::answer`].
    pub(crate) async fn request<T>(&self, slot: Slot, reply: Reply<T>) -> Result<T, Fault> {
        self.query(slot, reply).answer().await
    }

    /// A reply whose answer is wanted also when it is late.
    pub(crate) fn query<T>(&self, slot: Slot, reply: Reply<T>) -> Query<'_, T> {
        Query { context: self, slot, reply: Some(reply) }
    }

    pub(crate) fn staged_fault(&self, key: &LockKey) -> Option<Fault> {
        self.stage.as_ref()?.next_fault(key)
    }

    pub(crate) fn count(&self, key: &LockKey, outcome: Outcome) {
        if let Some(stage) = &self.stage {
            stage.count(key, outcome);
        }
    }
}

impl Drop for BackendContext {
    fn drop(&mut self) {
        if self.is_inherited() {
            // Its connections stay as they are: to close one here would take it out of the events that the
            // parent waits for.
            mem::forget(Arc::clone(&self.backend));
        }
    }
}

pub(crate) struct Query<'a, T> {
    context: &'a BackendContext,
    slot: Slot,
    pub(crate) reply: Option<Reply<T>>,
}

impl<T> Query<'_, T> {
    /// The answer within the command deadline, or the fault that none came.
    ///
    /// # Cancel safety
    /// The reply stays, and its answer with it.
    pub(crate) fn answer(&mut self) -> impl Future<Output = Result<T, Fault>> {
        self.answer_within(self.context.command_deadline)
    }

    pub(crate) fn answer_within(
        &mut self,
        limit: Duration,
    ) -> impl Future<Output = Result<T, Fault>> {
        self.wait(limit, || true, Self::unanswered)
    }

    /// As [`answer`](Self::answer), but the command deadline counts from when the request was sent. A connection that
    /// has to be opened before has a deadline of its own.
    pub(crate) fn answer_once_sent(
        &mut self,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<T, Fault>> {
        self.wait(self.context.command_deadline, || attempt.sent_at().is_some(), Self::unanswered)
    }

    /// An answer that comes late, within this limit; `None` if it came in time.
    pub(crate) fn late_answer(
        &mut self,
        limit: Duration,
    ) -> impl Future<Output = Option<Result<T, Fault>>> {
        self.wait(limit, || true, |_, _, _| None)
    }

    fn wait<C, R>(
        &mut self,
        limit: Duration,
        // Whether the limit counts already.
        counts: C,
        none: fn(&BackendContext, Slot, Duration) -> R,
    ) -> LimitedReply<'_, T, C, R> {
        let Self { context, slot, reply } = self;
        LimitedReply { context, slot: *slot, reply, limit, counts, none, timer: None }
    }

    /// Calls the backend, because its connection may be the reason.
    fn unanswered(context: &BackendContext, slot: Slot, limit: Duration) -> Result<T, Fault> {
        Err(context.backend.unanswered(slot, limit))
    }
}

pin_project! {
    /// No async fn, which would store its parts twice.
    #[must_use = "nothing happens before it is awaited"]
    struct LimitedReply<'a, T, C, R> {
        context: &'a BackendContext,
        slot: Slot,
        reply: &'a mut Option<Reply<T>>,
        limit: Duration,
        // Whether the limit counts already.
        counts: C,
        none: fn(&BackendContext, Slot, Duration) -> R,
        #[pin]
        timer: Option<Sleep>,
    }
}

impl<T, C: Fn() -> bool, R: From<Result<T, Fault>>> Future for LimitedReply<'_, T, C, R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let mut this = self.project();
        let none = || (this.none)(this.context, *this.slot, *this.limit);
        let Some(reply) = this.reply else { return Poll::Ready(none()) };
        if let Poll::Ready(answer) = reply.as_mut().poll(cx) {
            **this.reply = None;
            return Poll::Ready(answer.into());
        }
        if this.timer.is_none() && (this.counts)() {
            this.timer.set(Some(this.context.backend.timer(*this.limit)));
        }
        match this.timer.as_pin_mut() {
            Some(timer) => timer.poll(cx).map(|()| none()),
            None => Poll::Pending,
        }
    }
}

pub(crate) trait TestStage: Send + Sync {
    fn next_fault(&self, key: &LockKey) -> Option<Fault>;

    fn count(&self, key: &LockKey, outcome: Outcome);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted,
    /// Another holder has the lock, or others wait for it already.
    Busy,
    Failed,
}

impl From<&Result<AcquireReply, Fault>> for Outcome {
    fn from(answer: &Result<AcquireReply, Fault>) -> Self {
        match answer {
            Ok(AcquireReply::Granted(_)) => Self::Granted,
            Ok(AcquireReply::Busy | AcquireReply::Done) => Self::Busy,
            Err(_) => Self::Failed,
        }
    }
}
