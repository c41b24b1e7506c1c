//! What an operator sends to a holder, in this process.

use std::sync::Arc;

use super::Memory;
use crate::backend::{Audience, Release, Reply, Revocation, Revoking};
use crate::types::key::LockKey;

impl Revoking for Arc<Memory> {
    /// The holder knows it when the reply is there.
    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let lockers: Vec<_> =
                store.state.lock().lockers.iter().filter_map(|(_, it)| it.upgrade()).collect();
            for locker in &lockers {
                locker.on_revocation(&revocation);
            }
            Ok(if lockers.is_empty() { Audience::Silence } else { Audience::Listens })
        })
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        self.reply(key, move |change| match change.inspect() {
            None => Release::Absent,
            Some(held) if held.owner.as_bytes() != owner => Release::Taken,
            Some(_) => {
                change.evict();
                Release::Released
            }
        })
    }
}
