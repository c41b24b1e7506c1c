//! What this project's own test suites need to see of the memory backend.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::Memory;
use crate::error::LockError;

/// The store behind `memory://name`, for as long as this lives.
#[derive(Clone)]
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
        self.0.flush();
    }

    /// The names that live now and how long each still does.
    #[must_use]
    pub fn keyspace(&self) -> Vec<(String, Duration)> {
        self.0.keyspace()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryStore").field(&self.keyspace()).finish()
    }
}
