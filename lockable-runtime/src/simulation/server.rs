//! One of the two servers: a store, and what it refuses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::core::memory::Memory;
use crate::core::process::clock::{Moment, tokio_time};

pub(super) struct Server {
    pub(super) store: Arc<Memory>,
    /// It answers nothing until then.
    stalled: Mutex<Moment>,
    /// What it refuses until then.
    refuses: Mutex<(Moment, Refusal)>,
}

/// What a server refuses for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has no memory for more data (`OOM`).
    #[default]
    Growth,
    /// It cannot save (`MISCONF`): all that writes.
    Writes,
    /// It believes that it is a replica (`READONLY`): the same, and the connection is not used again.
    ReadOnly,
}

/// What a request does with the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    Reads,
    /// Changes or deletes what is there.
    Writes,
    /// May need more memory.
    Grows,
}

impl Refusal {
    pub(super) const ALL: [Self; 3] = [Self::Growth, Self::Writes, Self::ReadOnly];

    fn concerns(self, does: Does) -> bool {
        does >= if self == Self::Growth { Does::Grows } else { Does::Writes }
    }
}

impl Server {
    pub(super) fn new() -> Self {
        Self {
            store: Memory::open("").unwrap(),
            stalled: Mutex::default(),
            refuses: Mutex::default(),
        }
    }

    pub(super) fn stall_until(&self, end: Moment) {
        let mut stalled = self.stalled.lock().unwrap();
        *stalled = end.max(*stalled);
    }

    pub(super) fn stalled_until(&self) -> Moment {
        *self.stalled.lock().unwrap()
    }

    /// Refuses that until then, unless it refuses something already, or has done so just now.
    pub(super) fn refuse_until(&self, end: Moment, what: Refusal) {
        let mut refuses = self.refuses.lock().unwrap();
        if tokio_time().since(refuses.0) > Duration::from_secs(1) {
            *refuses = (end, what);
        }
    }

    pub(super) fn refusal_of(&self, does: Does) -> Option<Refusal> {
        let (end, what) = *self.refuses.lock().unwrap();
        (tokio_time() < end && what.concerns(does)).then_some(what)
    }
}
