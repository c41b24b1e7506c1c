//! Which of the two servers has which slots: one of them all, until it fails over to the other one, or each its own,
//! of which some move from one to the other.

use super::keys::SLOTS;

/// How the servers are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// There is one.
    One,
    /// The other one is a replica, and takes over without the last writes.
    Failover,
    /// They share the slots, which move from one to the other key by key.
    Slots,
}

pub(super) struct Seats {
    of_slots: [Seat; SLOTS],
    /// How often one server has taken over from the other.
    pub(super) epoch: u64,
    /// Whether the former primary is in use still, or is about to be left.
    pub(super) is_failing_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub(super) server: usize,
    /// Where the slot moves.
    pub(super) moves_to: Option<usize>,
}

impl Seats {
    pub(super) fn new(topology: Topology) -> Self {
        let server = |slot| if topology == Topology::Slots { slot % 2 } else { 0 };
        let seat = |slot| Seat { server: server(slot), moves_to: None };
        Self { of_slots: std::array::from_fn(seat), epoch: 0, is_failing_over: false }
    }

    pub(super) fn seat(&self, slot: usize) -> Seat {
        self.of_slots[slot]
    }

    /// The server that has all slots.
    pub(super) fn primary(&self) -> usize {
        self.of_slots[0].server
    }

    pub(super) fn fail_over(&mut self) {
        self.epoch += 1;
        for seat in &mut self.of_slots {
            seat.server = 1 - seat.server;
        }
    }

    /// The slot moves to the other server, unless it does already; returns both.
    pub(super) fn begin_move(&mut self, slot: usize) -> Option<(usize, usize)> {
        let seat = &mut self.of_slots[slot];
        if seat.moves_to.is_some() {
            return None;
        }
        seat.moves_to = Some(1 - seat.server);
        Some((seat.server, 1 - seat.server))
    }

    pub(super) fn end_move(&mut self, slot: usize) {
        let seat = &mut self.of_slots[slot];
        if let Some(server) = seat.moves_to.take() {
            seat.server = server;
        }
    }
}
