//! The keys for which a waiting call logs that it waits: one call at a time, because a crowd would log the same many
//! times.

use std::collections::HashSet;

use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;

#[derive(Default)]
pub(super) struct Warners(Mutex<HashSet<LockKey>>);

pub(super) struct Warner<'a>(&'a Warners, LockKey);

impl Warners {
    /// `None` while another call logs for this key.
    pub(super) fn enter(&self, key: &LockKey) -> Option<Warner<'_>> {
        self.0.lock().insert(key.clone()).then(|| Warner(self, key.clone()))
    }
}

impl Drop for Warner<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}
