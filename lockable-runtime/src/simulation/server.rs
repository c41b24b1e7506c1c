use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::core::memory::Memory;
use crate::core::process::clock::{Moment, tokio_time};

pub(super) struct Server {
    pub(super) store: Arc<Memory>,
    /// Nothing is answered until then.
    stalled: Mutex<Moment>,
    /// What is refused until then.
    refuses: Mutex<(Moment, Refusal)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `OOM`.
    #[default]
    Growth,
    /// `MISCONF`: refuses all writes.
    Writes,
    /// `READONLY`: the same, and the connection is not used again.
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Does {
    Reads,
    Writes,
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

    /// Unless it refuses something already, or has just done so.
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
