//! A table with one seat: the server at one address, or the one that Sentinels name.

use std::sync::Arc;

use super::seats::Seats;
use super::server::Server;
use crate::backend::redis::connect::opener::Opener;
use crate::backend::redis::pubsub::wake_ups::WakeUps;
use crate::backend::redis::topology::connections::Connections;
use crate::types::slot::Slot;

pub(super) struct Single(Arc<Server>);

impl Single {
    pub(super) fn new(opener: Opener) -> Self {
        Self(Arc::new(Server {
            number: 0,
            node: None,
            wake_ups: WakeUps::new(opener.clone()),
            readers: Connections::new(opener.for_reading()),
            confirmers: Connections::new(opener.for_confirming()),
            connections: Connections::new(opener),
        }))
    }
}

impl Seats for Single {
    fn server(&self, _: Slot) -> Option<Arc<Server>> {
        Some(Arc::clone(&self.0))
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        vec![Arc::clone(&self.0)]
    }
}
