//! Reports of one server to its locker.

use std::sync::{Arc, OnceLock, Weak};

use crate::core::backend::{Danger, Events, Fault};
use crate::core::types::slot::Slot;
use crate::findings::Finding;

#[derive(Clone, Default)]
pub(crate) struct Reports {
    /// The locker, shared by all of its servers.
    events: Arc<OnceLock<Weak<dyn Events>>>,
    /// Says which slots the server has, if it is one of several.
    slot_owners: Option<Arc<dyn ServerSlots>>,
}

/// The slots of a server.
pub(crate) trait ServerSlots: Send + Sync {
    fn have(&self, slot: Slot) -> bool;

    /// The server may have lost its slots.
    fn doubt(&self);
}

impl Reports {
    /// Sets the locker; the first one stays.
    pub(crate) fn go_to(&self, events: Weak<dyn Events>) {
        drop(self.events.set(events));
    }

    pub(crate) fn of(&self, slot_owners: Arc<dyn ServerSlots>) -> Self {
        Self { events: Arc::clone(&self.events), slot_owners: Some(slot_owners) }
    }

    /// The locker; `None` before it is set, and once it is dropped.
    pub(crate) fn events(&self) -> Option<Arc<dyn Events>> {
        self.events.get()?.upgrade()
    }

    pub(crate) fn are_received(&self) -> bool {
        self.events.get().is_some_and(|events| events.strong_count() > 0)
    }

    pub(crate) fn connected(&self) {
        if let Some(events) = self.events() {
            events.on_connected(&|slot| self.concern(slot));
        }
    }

    pub(crate) fn broken(&self, fault: &Fault) {
        if let Some(events) = self.events() {
            events.on_broken(fault, &|slot| self.concern(slot));
        }
    }

    pub(crate) fn endangered(&self, server: &str, danger: &Finding) {
        if let Some(events) = self.events() {
            let (code, message) = (danger.code().as_str(), danger.message());
            events.on_endangered(&Danger { server, code, message, advice: danger.advice() });
        }
    }

    pub(crate) fn doubted(&self) {
        if let Some(slot_owners) = &self.slot_owners {
            slot_owners.doubt();
        }
    }

    /// Whether this server's reports are about locks of the slot.
    pub(crate) fn concern(&self, slot: Slot) -> bool {
        self.slot_owners.as_ref().is_none_or(|slot_owners| slot_owners.have(slot))
    }
}
