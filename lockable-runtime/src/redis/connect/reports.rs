//! What a server reports of itself, on its way up.

use std::sync::{Arc, OnceLock, Weak};

use crate::core::backend::{Danger, Events, Fault};
use crate::core::types::slot::Slot;
use crate::findings::Finding;

/// The way from one server to the locker.
#[derive(Clone, Default)]
pub(crate) struct Reports {
    /// Leads to the locker, and is shared by all of its servers.
    events: Arc<OnceLock<Weak<dyn Events>>>,
    /// Says which slots the server has, where it is one of several.
    slot_owners: Option<Arc<dyn ServerSlots>>,
}

/// The slots of a server in the table of all slots.
pub(crate) trait ServerSlots: Send + Sync {
    /// Whether the server has the slot, as far as is known.
    fn have(&self, slot: Slot) -> bool;

    /// The server may not have its slots any more.
    fn doubt(&self);
}

impl Reports {
    /// Where reports go from now on; the first one stays.
    pub(crate) fn go_to(&self, events: Weak<dyn Events>) {
        drop(self.events.set(events));
    }

    /// Makes the reports of a server that has these slots, which go to the same locker.
    pub(crate) fn of(&self, slot_owners: Arc<dyn ServerSlots>) -> Self {
        Self { events: Arc::clone(&self.events), slot_owners: Some(slot_owners) }
    }

    /// The locker; none once it is dropped, and before it is known.
    pub(crate) fn events(&self) -> Option<Arc<dyn Events>> {
        self.events.get()?.upgrade()
    }

    /// Whether a locker is there.
    pub(crate) fn are_received(&self) -> bool {
        self.events.get().is_some_and(|events| events.strong_count() > 0)
    }

    /// A connection was opened, or the next one leads to another server.
    pub(crate) fn connected(&self) {
        if let Some(events) = self.events() {
            events.on_connected(&|slot| self.concern(slot));
        }
    }

    /// A connection broke.
    pub(crate) fn broken(&self, fault: &Fault) {
        if let Some(events) = self.events() {
            events.on_broken(fault, &|slot| self.concern(slot));
        }
    }

    /// A setting of the server endangers locks.
    pub(crate) fn endangered(&self, server: &str, danger: &Finding) {
        if let Some(events) = self.events() {
            let (code, message) = (danger.code().as_str(), danger.message());
            events.on_endangered(&Danger { server, code, message, advice: danger.advice() });
        }
    }

    /// The server may not have its slots any more.
    pub(crate) fn doubted(&self) {
        if let Some(slot_owners) = &self.slot_owners {
            slot_owners.doubt();
        }
    }

    /// Whether what this server reports is about the locks of the slot.
    pub(crate) fn concern(&self, slot: Slot) -> bool {
        self.slot_owners.as_ref().is_none_or(|slot_owners| slot_owners.have(slot))
    }
}
