//! One entry of a queue.

use std::time::SystemTime;

use crate::backend::Queued;
use crate::types::owner::{ProcessId, TokenParts};

/// A process that waits for a lock.
///
/// Its calls wait in a line of their own, in the process: the entry is for the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    process: Option<ProcessId>,
    waiting_since: Option<SystemTime>,
    request_id: Option<String>,
    is_listening: Option<bool>,
}

impl Waiter {
    /// Which process waits; `None` for an entry that another program wrote.
    #[must_use]
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    /// Since when it waits, by its own clock.
    #[must_use]
    pub fn waiting_since(&self) -> Option<SystemTime> {
        self.waiting_since
    }

    /// The [request id](crate::RequestId) of its call, if that has one.
    ///
    /// It may be a client's text: escape it before a terminal or a page shows it.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Whether a grant would reach it: `false` is a process that has ended, or whose subscription is broken at the
    /// moment, and it is passed over. `None` where the server does not let that be asked.
    #[must_use]
    pub fn is_listening(&self) -> Option<bool> {
        self.is_listening
    }

    pub(super) fn of(queued: &Queued) -> Self {
        let acquired = TokenParts::parse(&queued.owner);
        Self {
            process: acquired.map(|acquired| acquired.process),
            waiting_since: acquired.and_then(|acquired| acquired.attempted_at),
            request_id: acquired.and_then(|acquired| acquired.identity).map(ToOwned::to_owned),
            is_listening: queued.is_listening,
        }
    }
}
