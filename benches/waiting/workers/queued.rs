//! One waiter of a key after the other, within this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use lockable_benches::worker::{Contender, Waiter};
use tokio::sync::{Mutex as Queue, OwnedMutexGuard as Place};

/// Has the waiters of a key queue at a mutex, first come, first served. What stands behind it never
/// finds anybody else.
pub(super) struct Queued<C> {
    contender: C,
    /// By key; made by the first waiter, gone with the last.
    queues: Mutex<HashMap<String, Weak<Queue<()>>>>,
}

pub(super) struct Locking<W> {
    waiter: W,
    queue: Arc<Queue<()>>,
    place: Option<Place<()>>,
}

impl<C> Queued<C> {
    pub(super) fn new(contender: C) -> Self {
        Self { contender, queues: Mutex::default() }
    }

    fn queue(&self, key: &str) -> Arc<Queue<()>> {
        let mut queues = self.queues.lock().expect("nobody panics with it");
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = queues.get(key).and_then(Weak::upgrade).unwrap_or_default();
        queues.insert(key.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl<C: Contender> Contender for Queued<C> {
    type Waiter = Locking<C::Waiter>;

    fn waiter(&self, key: String) -> Locking<C::Waiter> {
        let queue = self.queue(&key);
        Locking { waiter: self.contender.waiter(key), queue, place: None }
    }
}

impl<W: Waiter> Waiter for Locking<W> {
    async fn acquire(&mut self) {
        let place = Arc::clone(&self.queue).lock_owned().await;
        self.waiter.acquire().await;
        self.place = Some(place);
    }

    async fn release(&mut self) {
        self.waiter.release().await;
        self.place = None;
    }
}

/// Nothing to ask anybody for.
pub(super) struct Nothing;

impl Contender for Nothing {
    type Waiter = Self;

    fn waiter(&self, _key: String) -> Self {
        Self
    }
}

impl Waiter for Nothing {
    async fn acquire(&mut self) {}

    async fn release(&mut self) {}
}
