//! What becomes of subscriptions when the server at an address becomes a replica, and the address leads to another.
//!
//! See "Why does `PUBSUB NUMSUB` come before each wake-up?" in DESIGN.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::backend::epochs::{Epoch, Epochs};

/// Whether the server was demoted. A connection for commands learns that by an answer; a subscription, which stays
/// there, does not.
#[derive(Default)]
pub(crate) struct Demotion {
    /// Until a connection leads to another server.
    is_noticed: AtomicBool,
    /// One begins with the first connection after each demotion.
    epochs: Arc<Epochs>,
}

impl Demotion {
    /// A server has answered that it is a replica.
    pub(crate) fn notice(&self) {
        self.is_noticed.store(true, Ordering::Relaxed);
    }

    /// A connection leads to a server that takes locks. Subscriptions that are older than a demotion are over.
    pub(crate) fn end(&self) {
        if self.is_noticed.swap(false, Ordering::Relaxed) {
            self.epochs.begin(true);
        }
    }

    /// In which a subscription counts that is opened now.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epochs.current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_demotion_ends_the_subscriptions_before_it_once() {
        let demotion = Demotion::default();
        let before = demotion.epoch();
        demotion.end();
        demotion.notice();
        assert!(!before.is_over(), "no connection leads to another server yet");
        demotion.end();
        assert!(before.is_over());
        let after = demotion.epoch();
        demotion.end();
        assert!(!after.is_over(), "it was another connection to the same server");
    }
}
