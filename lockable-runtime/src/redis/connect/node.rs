//! One node of a cluster, while it has slots there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use super::endpoint::Endpoint;
use crate::core::backend::epochs::{Epoch, Epochs};
use crate::core::types::slot::Slot;

/// A present or former master of the cluster.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    /// One of its latest slots, with whose keys a new connection is tried.
    slot: AtomicU16,
    /// Whether it ever had one; `ASK` may name others.
    has_had_slots: AtomicBool,
    epochs: Arc<Epochs>,
    /// Lasts while it has slots.
    epoch: Epoch,
}

impl Node {
    pub(crate) fn new(endpoint: Endpoint, slot: Slot) -> Self {
        let epochs = Arc::<Epochs>::default();
        let epoch = epochs.current();
        let slot = AtomicU16::new(slot.number());
        let has_had_slots = AtomicBool::new(false);
        Self { endpoint, slot, has_had_slots, epochs, epoch }
    }

    pub(crate) fn slot(&self) -> Slot {
        Slot::new(self.slot.load(Ordering::Relaxed))
    }

    pub(crate) fn has(&self, slot: Slot) {
        self.slot.store(slot.number(), Ordering::Relaxed);
        self.has_had_slots.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_had_slots(&self) -> bool {
        self.has_had_slots.load(Ordering::Relaxed)
    }

    /// It has no slot any more: its replies no longer count.
    pub(crate) fn abandon(&self) {
        self.epochs.begin(true);
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }
}
