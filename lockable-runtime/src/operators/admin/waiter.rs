use std::time::SystemTime;

use crate::core::types::id::ProcessId;
use crate::core::types::owner::TokenParts;
use crate::operators::contract::Queued;

/// A process that waits for a lock.
///
/// The entry is that of its first call; the others wait in a line within the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    process: Option<ProcessId>,
    waiting_since: Option<SystemTime>,
    request_id: Option<String>,
    is_listening: Option<bool>,
}

impl Waiter {
    /// Returns the process that waits; `None` for an entry that another program wrote.
    #[must_use]
    pub fn process(&self) -> Option<ProcessId> {
        self.process
    }

    /// Returns when it began to wait, by its own clock.
    #[must_use]
    pub fn waiting_since(&self) -> Option<SystemTime> {
        self.waiting_since
    }

    /// Returns the [request id](crate::RequestId) of its call, if that has one.
    ///
    /// It may be a client's text: escape it before a terminal or a page shows it.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Returns whether a wake-up would reach it; `None` when that is unknown.
    ///
    /// It is `false` for a process that has ended, or whose subscription is broken at the moment. A hand-off skips such
    /// an entry.
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
