//! Two scripts a section, and nobody who finds the lock taken.
//!
//! The waiters of a key queue at a mutex of this process, first come, first served, so that a hand-off
//! is a release, an acquisition and nothing else. No lock that asks Redis twice a section has more
//! sections a second; one that passes its lease on within a process can have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use lockable_benches::worker::{Contender, Waiter};
use tokio::sync::{Mutex as Queue, OwnedMutexGuard as Place};

use super::client::{Client, RELEASE, Script};
use super::{LEASE_MS, OWNER};

pub(super) async fn contender(url: &str) -> Limit {
    let mut client = Client::connect(url).await;
    let (acquire, release) = (client.load(ACQUIRE).await, client.load(RELEASE).await);
    Limit { client, acquire, release, queues: Mutex::default() }
}

pub(super) struct Limit {
    client: Client,
    acquire: Script,
    release: Script,
    /// By key; made by the first waiter, gone with the last.
    queues: Mutex<HashMap<String, Weak<Queue<()>>>>,
}

pub(super) struct Locking {
    client: Client,
    acquire: Script,
    release: Script,
    key: String,
    queue: Arc<Queue<()>>,
    place: Option<Place<()>>,
}

impl Contender for Limit {
    type Waiter = Locking;

    fn waiter(&self, key: String) -> Locking {
        Locking {
            client: self.client.clone(),
            acquire: self.acquire.clone(),
            release: self.release.clone(),
            queue: self.queue(&key),
            key,
            place: None,
        }
    }
}

impl Limit {
    fn queue(&self, key: &str) -> Arc<Queue<()>> {
        let mut queues = self.queues.lock().expect("nobody panics with it");
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = queues.get(key).and_then(Weak::upgrade).unwrap_or_default();
        queues.insert(key.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl Waiter for Locking {
    async fn acquire(&mut self) {
        let place = Arc::clone(&self.queue).lock_owned().await;
        let lease = LEASE_MS.to_string();
        let acquired = self.client.call(&self.acquire, &self.key, &[OWNER, &lease]).await;
        assert_eq!(acquired, 1, "nobody else has this key");
        self.place = Some(place);
    }

    async fn release(&mut self) {
        let released = self.client.call(&self.release, &self.key, &[OWNER]).await;
        assert_eq!(released, 1);
        self.place = None;
    }
}

const ACQUIRE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return 0";
