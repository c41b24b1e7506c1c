//! The slots of a cluster, and what follows when one changes hands.

use std::sync::{Arc, Weak};

use super::pace::Pace;
use super::table::{SlotTable, TableChanges};
use crate::core::process::clock::{Moment, boot_time};
use crate::core::process::mutex::Mutex;
use crate::core::types::slot::{SLOTS, Slot};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::reports::ServerSlots;

/// The nodes of a cluster, with their slots and connections.
pub(crate) struct Slots {
    pub(super) opener: Opener,
    pub(super) seeds: Vec<Endpoint>,
    pub(super) table: Mutex<SlotTable>,
    pub(super) pace: Pace,
    pub(super) this: Weak<Self>,
}

impl Slots {
    pub(super) fn new(opener: Opener, seeds: Vec<Endpoint>) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let slots = Weak::clone(this);
            let slots_of =
                move |number| Arc::new(NodeSlots { slots: Weak::clone(&slots), number }) as _;
            Self {
                table: Mutex::new(SlotTable::new(opener.clone(), Box::new(slots_of))),
                opener,
                seeds,
                pace: Pace::default(),
                this: Weak::clone(this),
            }
        })
    }

    /// Makes a change that nodes have reported. For slots that changed hands, fence counters are seeded again, and
    /// leases checked.
    pub(super) fn change(&self, change: impl FnOnce(&mut SlotTable, Moment) -> TableChanges) {
        let changes = change(&mut self.table.lock(), boot_time());
        for server in &changes.left {
            server.abandon();
        }
        if changes.moves.is_empty() {
            return;
        }
        let mut moved = vec![false; SLOTS];
        for (slot, servers) in &changes.moves {
            for server in servers {
                server.forget_fence(*slot);
            }
            if let Some(moved) = moved.get_mut(slot.index()) {
                *moved = true;
            }
        }
        if let Some(events) = self.opener.reports.events() {
            events.on_connected(&|slot| moved.get(slot.index()).is_some_and(|moved| *moved));
        }
    }
}

struct NodeSlots {
    slots: Weak<Slots>,
    number: usize,
}

impl ServerSlots for NodeSlots {
    fn have(&self, slot: Slot) -> bool {
        let is_it =
            |slots: &Slots| slots.table.lock().owner(slot).map(|it| it.number) == Some(self.number);
        self.slots.upgrade().is_some_and(|slots| is_it(&slots))
    }

    fn doubt(&self) {
        if let Some(slots) = self.slots.upgrade() {
            slots.start_refresh();
        }
    }
}
