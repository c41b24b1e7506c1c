//! The memory backend, with what a test has staged: acquisitions that fail, and counts.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::Counts;
use crate::backend::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Fault, Grant, Granted, Held, Memory, Release,
    Renewal, Renewed, Reply,
};
use crate::types::clock::Moment;
use crate::types::error::LockErrorKind;
use crate::types::key::LockKey;
use crate::types::token::Origin;

/// A store of locks in memory that does what a test told it.
pub(super) struct Staged {
    memory: Arc<Memory>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many of the next acquisitions fail, of one key and of any.
    failing: HashMap<LockKey, usize>,
    failing_of_any: usize,
    counts: HashMap<LockKey, Counts>,
}

impl State {
    /// Whether this acquisition is one of those that fail; then there is one less.
    fn fails(&mut self, key: &LockKey) -> bool {
        let of_key = self.failing.get_mut(key).filter(|left| **left > 0);
        let left = of_key.unwrap_or(&mut self.failing_of_any);
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }
}

impl Staged {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self { memory, state: Mutex::default() }
    }

    /// The store itself, which counts nothing and fails nothing.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(super) fn fail_next(&self, key: LockKey) {
        *self.state().failing.entry(key).or_default() += 1;
    }

    pub(super) fn fail_next_of_any(&self) {
        self.state().failing_of_any += 1;
    }

    pub(super) fn counts(&self, key: &LockKey) -> Counts {
        self.state().counts.get(key).copied().unwrap_or_default()
    }

    fn count(&self, key: &LockKey, count: impl FnOnce(&mut Counts) -> &mut usize) {
        *count(self.state().counts.entry(key.clone()).or_default()) += 1;
    }

    /// The fault of an acquisition that is to fail.
    fn fault(&self, key: &LockKey) -> Option<Fault> {
        if !self.state().fails(key) {
            return None;
        }
        self.count(key, |counts| &mut counts.failed);
        let message = "the store is unavailable, as the test asked for";
        let fault = Fault::new(LockErrorKind::Unavailable, message);
        Some(Fault { proves_absence: true, ..fault })
    }

    async fn acquire(self: Arc<Self>, attempt: Arc<Attempt>) -> Result<Acquisition, Fault> {
        let key = attempt.key.clone();
        if let Some(fault) = self.fault(&key) {
            return Err(fault);
        }
        let outcome = self.memory.try_acquire(attempt).await?;
        match outcome {
            Acquisition::Granted { .. } => self.count(&key, |counts| &mut counts.granted),
            Acquisition::Busy => self.count(&key, |counts| &mut counts.busy),
        }
        Ok(outcome)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers change one at a time, so a panic elsewhere leaves them sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Arc<Staged> {
    fn name(&self) -> &str {
        self.memory.name()
    }

    fn store(&self) -> &str {
        self.memory.store()
    }

    fn now(&self) -> Moment {
        self.memory.now()
    }

    fn timer(&self, duration: Duration) -> Sleep {
        self.memory.timer(duration)
    }

    fn connect(&self) -> Reply<()> {
        self.memory.connect()
    }

    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        Box::pin(Arc::clone(self).acquire(attempt))
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        self.memory.release(attempt)
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        self.memory.renew(renewals)
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        self.memory.enqueue(attempt)
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        self.memory.leave(attempt)
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        self.memory.release_to(attempt, next)
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Granted>) -> Reply<()> {
        self.memory.listen(origin, hook)
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        self.memory.inspect(key)
    }

    fn check(&self, prefix: &str) -> Checkup {
        self.memory.check(prefix)
    }

    fn unanswered(&self, waited: Duration) {
        self.memory.unanswered(waited);
    }

    fn lined_up(&self, key: &LockKey) {
        self.count(key, |counts| &mut counts.busy);
    }

    fn served(&self, key: &LockKey) {
        self.count(key, |counts| &mut counts.granted);
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.memory.detach(task);
    }

    fn home(&self, caller_blocks: bool) -> Handle {
        self.memory.home(caller_blocks)
    }

    fn when_connected(&self, hook: Box<dyn Fn() + Send + Sync>) {
        self.memory.when_connected(hook);
    }
}
