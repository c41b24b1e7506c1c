//! The store in memory as two processes query it, with what is under way between them.

use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use crate::core::backend::{
    Attempt, Backend, Enqueued, Environment as _, Events, Grant, Release, Reply, WakeUp,
};
use crate::core::memory::Memory;
use crate::core::types::key::LockKey;
use crate::core::types::owner::Origin;

pub(super) const KEY: LockKey = LockKey::from_static("k");

pub(super) struct Store {
    memory: Arc<Memory>,
    pub(super) origins: [Origin; 2],
    last_reply: [Arc<LastReply>; 2],
}

/// The wake-ups that were published to one process, and are under way.
#[derive(Default)]
struct LastReply(Mutex<Vec<WakeUp>>);

impl Events for LastReply {
    fn on_wake_up(&self, wake_up: WakeUp) {
        self.0.lock().unwrap().push(wake_up);
    }
}

impl Store {
    pub(super) fn open() -> Self {
        let memory = Memory::open("").unwrap();
        let origins = [Origin::draw().unwrap(), Origin::draw().unwrap()];
        let last_reply: [Arc<LastReply>; 2] = Default::default();
        for (origin, last_reply) in origins.iter().zip(&last_reply) {
            let listener: Weak<LastReply> = Arc::downgrade(last_reply);
            memory.report_to(*origin, listener);
        }
        Self { memory, origins, last_reply }
    }

    pub(super) fn enqueue(&self, attempt: &Arc<Attempt>) -> Enqueued {
        answer(self.memory.enqueue(Arc::clone(attempt)))
    }

    pub(super) fn leave(&self, attempt: &Arc<Attempt>) {
        answer(self.memory.leave(Arc::clone(attempt)));
    }

    pub(super) fn release(
        &self,
        attempt: &Arc<Attempt>,
        next: Option<&Arc<Attempt>>,
    ) -> (Release, Option<Grant>) {
        let attempt = Arc::clone(attempt);
        match next {
            None => (answer(self.memory.release(attempt)), None),
            Some(next) => answer(self.memory.release_to(attempt, Arc::clone(next))),
        }
    }

    pub(super) fn evict(&self) {
        self.memory.evict(KEY);
    }

    pub(super) fn flush(&self) {
        self.memory.flush();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owner().is_none() && self.memory.queue(&KEY).is_empty()
    }

    pub(super) fn owner(&self) -> Option<String> {
        answer(self.memory.inspect(KEY)).map(|held| held.owner.text().to_owned())
    }

    pub(super) fn published(&self, process: usize) -> Vec<WakeUp> {
        std::mem::take(&mut *self.last_reply[process].0.lock().unwrap())
    }
}

fn answer<T>(reply: Reply<T>) -> T {
    match pin!(reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(answer)) => answer,
        _ => unreachable!("memory answers at once"),
    }
}
