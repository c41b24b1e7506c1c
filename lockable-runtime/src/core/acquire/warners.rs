//! Which of the calls that wait for a key logs that: one at a time, because a crowd would log the same many times.

use std::collections::HashSet;

use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;

/// The keys for which a call logs that it waits.
#[derive(Default)]
pub(super) struct Warners(Mutex<HashSet<LockKey>>);

/// The one of a key, until it is dropped.
pub(super) struct Warner<'a>(&'a Warners, LockKey);

impl Warners {
    /// `None` while another call is the one of this key.
    pub(super) fn enter(&self, key: &LockKey) -> Option<Warner<'_>> {
        self.0.lock().insert(key.clone()).then(|| Warner(self, key.clone()))
    }
}

impl Drop for Warner<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}
