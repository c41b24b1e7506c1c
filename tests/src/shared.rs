//! Servers that several tests of a process use.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What several tests use at the same time, each for keys of its own; no test may harm it.
///
/// The first one starts it, and it ends with the last one.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    /// Nothing is started yet.
    pub const fn unstarted() -> Self {
        Self(Mutex::new(Weak::new()))
    }

    /// What is there; starts it if nothing is.
    pub fn get(&self, start: impl FnOnce() -> T) -> Arc<T> {
        // A test that could not start it has failed; the next one tries again.
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(start());
            *shared = Arc::downgrade(&started);
            started
        })
    }
}
