//! A store in memory as this project's tests read and change it directly, without the verbs.

use std::sync::Arc;
use std::time::Duration;

use super::Memory;
use super::state::{Lock, State, StoredKey};
use crate::core::backend::Fault;
use crate::core::naming::namespace::Namespace;
use crate::core::process::clock::tokio_time;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::owner::OwnerToken;
use crate::core::types::slot::Slot;

/// The store behind `memory://name`, for as long as this lives.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "no test prints it")]
pub struct MemoryStore(Arc<Memory>);

impl MemoryStore {
    /// Opens the store that lockers of `memory://name` share.
    ///
    /// # Errors
    /// When the system gives no background thread.
    pub fn open(name: &str) -> Result<Self, LockError> {
        Ok(Self(Memory::open(name).map_err(Fault::into_error)?))
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub fn flush(&self) {
        self.0.state.lock().flush();
    }

    /// Deletes a lock, which may have a holder.
    pub fn delete(&self, key: &str) {
        self.place(key, |place| place.lock = None);
    }

    /// Replaces the holder by another one.
    pub fn put_foreign(&self, key: &str, life: Duration) {
        self.put(key, "another holder", life);
    }

    /// Replaces what has the lock by this value.
    pub fn put(&self, key: &str, owner: &str, life: Duration) {
        let lock = Lock::held(&OwnerToken::received(owner), tokio_time().after(life));
        self.place(key, |place| place.lock = Some(lock));
    }

    /// The owner tokens of the waiters for a lock, in their order.
    #[must_use]
    pub fn queue(&self, key: &str) -> Vec<String> {
        let owners = |place: &mut StoredKey| {
            place.queue.iter().map(|attempt| attempt.owner.as_ref().to_owned()).collect()
        };
        self.place(key, owners).unwrap_or_default()
    }

    /// The last fencing token of a lock's slot, while its fence counter lives.
    #[must_use]
    pub fn fence(&self, key: &str) -> Option<u64> {
        let now = tokio_time();
        let slot = Slot::of(&LockKey::prefixed("", key).ok()?);
        let state = self.0.state.lock();
        let fence = state.counting.fences.get(&slot).filter(|fence| now < fence.expires);
        fence.map(|fence| fence.value)
    }

    /// The names that live now, and for how long.
    #[must_use]
    pub fn keyspace(&self) -> Vec<(String, Duration)> {
        // As a server's keys are called by default.
        let now = tokio_time();
        let namespace = Namespace::default();
        let state = self.0.state.lock();
        let locks = state.places.iter().map(|(key, place)| (key.to_string(), place.expires()));
        let fences = state.counting.fences.iter();
        let fences =
            fences.map(|(slot, fence)| (namespace.fence(*slot).to_string(), fence.expires));
        let alive = locks.chain(fences).filter(|(_, end)| now < *end);
        alive.map(|(name, end)| (name, end.since(now))).collect()
    }

    fn place<T>(&self, key: &str, look: impl FnOnce(&mut StoredKey) -> T) -> Option<T> {
        let key = LockKey::prefixed("", key).ok()?;
        let look = |state: &mut State| look(state.places.entry(key.clone()).or_default());
        Some(self.0.state.lock().with_queue(&key, look))
    }
}
