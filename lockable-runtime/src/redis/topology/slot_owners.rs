//! Which server has which slot.

use std::sync::Arc;

use super::server::Server;
use super::slots::Slots;
use crate::core::backend::Fault;
use crate::core::process::clock::Moment;
use crate::core::types::slot::Slot;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Opener;
use crate::redis::wire::connection::Connection;

pub(crate) enum SlotOwners {
    /// The server at one address, or the elected one, has all slots.
    One(Arc<Server>),
    Shared(Arc<Slots>),
}

impl SlotOwners {
    pub(crate) fn server(&self, slot: Slot) -> Option<Arc<Server>> {
        match self {
            Self::One(server) => Some(Arc::clone(server)),
            Self::Shared(slots) => slots.table.lock().owner(slot).cloned(),
        }
    }

    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        match self {
            Self::One(server) => vec![Arc::clone(server)],
            Self::Shared(slots) => slots.table.lock().masters(),
        }
    }

    pub(crate) fn number(&self, slot: Slot) -> Option<usize> {
        self.server(slot).map(|server| server.number)
    }

    /// The server at this place, which may have no slot yet.
    pub(crate) fn server_at(&self, endpoint: &Endpoint, slot: Slot) -> Arc<Server> {
        match self {
            Self::One(server) => Arc::clone(server),
            Self::Shared(slots) => slots.table.lock().server_at(endpoint, slot),
        }
    }

    /// When the slot last moved to another server; zero if never.
    pub(super) fn moved_at(&self, slot: Slot) -> Moment {
        match self {
            Self::One(_) => Moment::default(),
            Self::Shared(slots) => slots.table.lock().moved_at(slot),
        }
    }

    /// Whether the slot is at this connection's server, as far as is known.
    pub(crate) fn leads_to(&self, slot: Slot, connection: &Connection) -> bool {
        let Some(endpoint) = connection.node() else { return true };
        self.server(slot).is_some_and(|server| server.endpoint() == Some(endpoint))
    }

    /// This connection's server says that the slot is elsewhere now.
    pub(crate) fn move_slot(&self, slot: Slot, connection: &Connection, to: &Endpoint) {
        if let (Self::Shared(slots), Some(from)) = (self, connection.node()) {
            slots.change(|table, now| table.move_slot(slot, from, to, now));
            // It is rarely the only one.
            self.refresh_soon();
        }
    }

    pub(crate) fn are_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Requests a refresh of the slots, without waiting; `false` if one server has all.
    pub(crate) fn refresh_soon(&self) -> bool {
        if let Self::Shared(slots) = self {
            slots.start_refresh();
        }
        self.are_shared()
    }

    pub(super) async fn refreshed(&self) -> Result<(), Fault> {
        match self {
            Self::One(_) => Ok(()),
            Self::Shared(slots) => Box::pin(slots.refresh_and_wait()).await,
        }
    }

    /// The opener of a server, another at each try: what is published at one arrives at all.
    pub(super) fn any_opener(&self, attempt: usize) -> Option<Opener> {
        let servers = self.servers();
        let at = attempt.checked_rem(servers.len())?;
        servers.get(at).map(|server| server.connections.opener.clone())
    }
}
