//! Ends subscriptions when the server at an address becomes a replica and the address leads to another.
//!
//! See "Why does `PUBSUB NUMSUB` come before each wake-up?" in DESIGN.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::backend::epochs::{Epoch, Epochs};

/// Whether the server was demoted. A connection for commands learns that from a reply; a subscription does not.
#[derive(Default)]
pub(crate) struct Demotion {
    /// Until a connection leads to another server.
    is_noticed: AtomicBool,
    /// One starts with the first connection after each demotion.
    epochs: Arc<Epochs>,
}

impl Demotion {
    pub(crate) fn notice(&self) {
        self.is_noticed.store(true, Ordering::Relaxed);
    }

    /// A connection leads to a primary: ends subscriptions that are older than the demotion.
    pub(crate) fn end(&self) {
        if self.is_noticed.swap(false, Ordering::Relaxed) {
            self.epochs.begin(true);
        }
    }

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
