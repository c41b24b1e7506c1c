//! One node of a cluster, for as long as it has slots there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use super::endpoint::Endpoint;
use crate::core::backend::epochs::{Epoch, Epochs};
use crate::core::types::slot::Slot;

/// A node that is, or was, a master of the cluster.
pub(crate) struct Node {
    pub(crate) endpoint: Endpoint,
    /// The number of a slot that it had last, with whose keys a new connection is tried.
    slot: AtomicU16,
    /// Whether it ever had one; other nodes may have been asked for a slot that moves there.
    has_had_slots: AtomicBool,
    epochs: Arc<Epochs>,
    /// In which it has slots.
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

    /// It has this slot now.
    pub(crate) fn has(&self, slot: Slot) {
        self.slot.store(slot.number(), Ordering::Relaxed);
        self.has_had_slots.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_had_slots(&self) -> bool {
        self.has_had_slots.load(Ordering::Relaxed)
    }

    /// It has no slot any more: what it was asked counts for nothing.
    pub(crate) fn abandon(&self) {
        self.epochs.begin(true);
    }

    /// Over once the node is left.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch.clone()
    }
}
