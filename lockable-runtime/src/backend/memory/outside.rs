//! A store in memory as this project's tests read and change it directly, without the verbs.

use std::sync::Arc;
use std::time::Duration;

use super::Memory;
use super::state::{Lock, Slot};
use crate::types::clock::tokio_time;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::token::OwnerToken;

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
        Ok(Self(Memory::open(name)?))
    }

    /// Forgets everything, as a server does that restarts without its data.
    pub fn flush(&self) {
        self.0.state().slots.clear();
    }

    /// Deletes a lock, which may have a holder.
    pub fn delete(&self, key: &str) {
        self.slot(key, |slot| slot.lock = None);
    }

    /// Replaces the holder by another one.
    pub fn put_foreign(&self, key: &str, life: Duration) {
        let lock = Lock::held(&OwnerToken::received("another holder"), tokio_time().after(life));
        self.slot(key, |slot| slot.lock = Some(lock));
    }

    /// The owner tokens of the waiters for a lock, in their order.
    #[must_use]
    pub fn queue(&self, key: &str) -> Vec<String> {
        let owners = |slot: &mut Slot| {
            slot.queue.iter().map(|attempt| attempt.owner.as_ref().to_owned()).collect()
        };
        self.slot(key, owners).unwrap_or_default()
    }

    /// The last fencing token of a lock that is given away, where its fence counter lives.
    #[must_use]
    pub fn fence(&self, key: &str) -> Option<u64> {
        let now = tokio_time();
        self.slot(key, |slot| (now < slot.fence.expires).then_some(slot.fence.value))?
    }

    /// The names that live now and how long each still does.
    #[must_use]
    pub fn keyspace(&self) -> Vec<(String, Duration)> {
        let now = tokio_time();
        let names = |(key, slot): (&LockKey, &Slot)| {
            [(key.to_string(), slot.expires()), (key.fence().to_string(), slot.fence.expires)]
        };
        let all = self.0.state();
        let all = all.slots.iter().flat_map(names);
        all.filter(|(_, end)| now < *end).map(|(name, end)| (name, end.since(now))).collect()
    }

    /// Nothing for what cannot be a key.
    fn slot<T>(&self, key: &str, look: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let key = LockKey::prefixed("", key).ok()?;
        Some(look(self.0.state().slots.entry(key).or_default()))
    }
}
