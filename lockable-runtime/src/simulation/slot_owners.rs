//! Which of the two servers has which slots: one has all until a failover, or they share them, and some move.

use super::keys::SLOTS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    One,
    /// The other one is a replica, and takes over without the last writes.
    Failover,
    /// They share the slots, which move key by key.
    Slots,
}

pub(super) struct SlotOwners {
    of_slots: [SlotOwner; SLOTS],
    /// The number of failovers.
    pub(super) epoch: u64,
    /// Whether the former primary is still in use.
    pub(super) is_failing_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotOwner {
    pub(super) server: usize,
    pub(super) moves_to: Option<usize>,
}

impl SlotOwners {
    pub(super) fn new(topology: Topology) -> Self {
        let server = |slot| if topology == Topology::Slots { slot % 2 } else { 0 };
        let slot_owner = |slot| SlotOwner { server: server(slot), moves_to: None };
        Self { of_slots: std::array::from_fn(slot_owner), epoch: 0, is_failing_over: false }
    }

    pub(super) fn slot_owner(&self, slot: usize) -> SlotOwner {
        self.of_slots[slot]
    }

    /// The server that has all slots.
    pub(super) fn primary(&self) -> usize {
        self.of_slots[0].server
    }

    pub(super) fn fail_over(&mut self) {
        self.epoch += 1;
        for slot_owner in &mut self.of_slots {
            slot_owner.server = 1 - slot_owner.server;
        }
    }

    /// Returns both servers, unless the slot moves already.
    pub(super) fn begin_move(&mut self, slot: usize) -> Option<(usize, usize)> {
        let slot_owner = &mut self.of_slots[slot];
        if slot_owner.moves_to.is_some() {
            return None;
        }
        slot_owner.moves_to = Some(1 - slot_owner.server);
        Some((slot_owner.server, 1 - slot_owner.server))
    }

    pub(super) fn end_move(&mut self, slot: usize) {
        let slot_owner = &mut self.of_slots[slot];
        if let Some(server) = slot_owner.moves_to.take() {
            slot_owner.server = server;
        }
    }
}
