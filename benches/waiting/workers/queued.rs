//! One waiter of a key after the other, within this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use lockable_benches::worker::{Contender, Waiter};
use tokio::sync::Semaphore;

/// Has the waiters of a key queue at a mutex, first come, first served. The lock behind it never
/// sees a second waiter: one that is dropped in the middle keeps its place.
pub(super) struct Queued<C> {
    contender: C,
    /// By key; made by the first waiter, gone with the last.
    queues: Mutex<HashMap<String, Weak<Semaphore>>>,
}

pub(super) struct Locking<W> {
    waiter: W,
    queue: Arc<Semaphore>,
}

impl<C> Queued<C> {
    pub(super) fn new(contender: C) -> Self {
        Self { contender, queues: Mutex::default() }
    }

    fn queue(&self, key: &str) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().expect("no holder panics with it");
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = queues.get(key).and_then(Weak::upgrade);
        let queue = queue.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
        queues.insert(key.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl<C: Contender> Contender for Queued<C> {
    type Waiter = Locking<C::Waiter>;

    fn waiter(&self, key: String) -> Locking<C::Waiter> {
        let queue = self.queue(&key);
        Locking { waiter: self.contender.waiter(key), queue }
    }
}

impl<W: Waiter> Waiter for Locking<W> {
    async fn acquire(&mut self) {
        self.queue.acquire().await.expect("it is never closed").forget();
        self.waiter.acquire().await;
    }

    async fn release(&mut self) {
        self.waiter.release().await;
        self.queue.add_permits(1);
    }
}

/// Needs no server.
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
