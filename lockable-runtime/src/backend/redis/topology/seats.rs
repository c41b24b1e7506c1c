//! What a table of seats does: one with a single seat, or one with a seat for each slot.

use std::sync::Arc;

use super::server::Server;
use crate::backend::Reply;
use crate::backend::redis::connect::endpoint::Endpoint;
use crate::types::clock::Moment;
use crate::types::slot::Slot;

/// Who has which seat. What is written here is so where one server has all slots.
pub(super) trait Seats: Send + Sync {
    fn server(&self, slot: Slot) -> Option<Arc<Server>>;

    /// All servers that have slots, as far as is known.
    fn servers(&self) -> Vec<Arc<Server>>;

    /// The number of the slot's server.
    fn number(&self, slot: Slot) -> Option<usize> {
        self.server(slot).map(|server| server.number)
    }

    /// The server at this place, which may have no slot yet.
    fn server_at(&self, _: &Endpoint, slot: Slot) -> Option<Arc<Server>> {
        self.server(slot)
    }

    /// When the slot's server was last left for another one; zero if never.
    fn moved_at(&self, _: Slot) -> Moment {
        Moment::default()
    }

    /// The server that was sent a request for a slot says that it is at this place now.
    fn move_slot(&self, _: Slot, _: &Endpoint, _: &Endpoint) {}

    /// Whether several servers share the slots.
    fn are_shared(&self) -> bool {
        false
    }

    /// Has the servers asked soon who has which slots; waits for nothing.
    fn refresh_soon(&self) {}

    /// The same, and waits for the answers.
    fn refreshed(&self) -> Reply<()> {
        Box::pin(async { Ok(()) })
    }
}
