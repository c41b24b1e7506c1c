//! One waiter of a key after the other, within this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use lockable_benches::worker::Contender;
use tokio::sync::Semaphore;

/// Has the waiters of a key queue at a mutex, first come, first served. The lock behind it never
/// sees a second waiter: one that is dropped in the middle keeps its place.
#[derive(Clone)]
pub(super) struct Queued<C> {
    contender: C,
    queues: Arc<Queues>,
    /// Where this waiter queued last, and for which key.
    last: Option<(String, Arc<Semaphore>)>,
}

/// By key; made by the first waiter, gone with the last.
type Queues = Mutex<HashMap<String, Weak<Semaphore>>>;

impl<C> Queued<C> {
    pub(super) fn new(contender: C) -> Self {
        Self { contender, queues: Arc::default(), last: None }
    }

    fn queue(&mut self, key: &str) -> &Semaphore {
        if self.last.as_ref().is_none_or(|(last, _)| last != key) {
            self.last = Some((key.to_owned(), find(&self.queues, key)));
        }
        let (_, queue) = self.last.as_ref().expect("it was made");
        queue
    }
}

fn find(queues: &Queues, key: &str) -> Arc<Semaphore> {
    let mut queues = queues.lock().expect("no holder panics with it");
    queues.retain(|_, queue| queue.strong_count() > 0);
    let queue = queues.get(key).and_then(Weak::upgrade);
    let queue = queue.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
    queues.insert(key.to_owned(), Arc::downgrade(&queue));
    queue
}

impl<C: Contender + Sync> Contender for Queued<C> {
    type Held = C::Held;

    async fn acquire(&mut self, key: &str) -> C::Held {
        self.queue(key).acquire().await.expect("it is never closed").forget();
        self.contender.acquire(key).await
    }

    async fn release(&mut self, key: &str, held: C::Held) {
        self.contender.release(key, held).await;
        self.queue(key).add_permits(1);
    }
}

/// Needs no server.
#[derive(Clone)]
pub(super) struct Nothing;

impl Contender for Nothing {
    type Held = ();

    async fn acquire(&mut self, _key: &str) {}

    async fn release(&mut self, _key: &str, (): ()) {}
}
