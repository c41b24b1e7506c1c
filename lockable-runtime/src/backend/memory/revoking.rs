//! What an operator sends to a holder, in this process.

use std::sync::{Arc, Weak};

use super::Memory;
use crate::backend::{Audience, Hearer, Release, Reply, Revocation, Revoking};
use crate::types::key::LockKey;

impl Revoking for Arc<Memory> {
    fn when_revoked(&self, hearer: Weak<dyn Hearer>) {
        let hearers = &mut self.state().hearers;
        hearers.retain(|other| other.strong_count() > 0);
        hearers.push(hearer);
    }

    /// The holder knows it when the reply is there.
    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        let store = Arc::clone(self);
        Box::pin(async move {
            let hearers: Vec<_> = store.state().hearers.iter().filter_map(Weak::upgrade).collect();
            for hearer in &hearers {
                hearer.on_revocation(&revocation);
            }
            Ok(if hearers.is_empty() { Audience::Silence } else { Audience::Listens })
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
