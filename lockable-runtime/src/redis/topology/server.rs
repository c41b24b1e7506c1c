//! A server with locks, present or former, and its connections.

use std::sync::Arc;

use crate::core::types::slot::Slot;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::node::Node;
use crate::redis::connect::opener::Opener;
use crate::redis::pubsub::wake_ups::WakeUps;
use crate::redis::topology::connections::Connections;

pub(crate) struct Server {
    pub(crate) number: usize,
    pub(super) node: Option<Arc<Node>>,
    pub(crate) connections: Connections,
    pub(crate) readers: Connections,
    pub(crate) confirmers: Connections,
    pub(crate) wake_ups: WakeUps,
}

impl Server {
    pub(super) fn new(number: usize, node: Option<Arc<Node>>, opener: Opener) -> Arc<Self> {
        Arc::new(Self {
            number,
            node,
            wake_ups: WakeUps::new(opener.afresh()),
            readers: Connections::new(opener.for_reading()),
            confirmers: Connections::new(opener.for_confirming()),
            connections: Connections::new(opener),
        })
    }

    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        self.node.as_ref().map(|node| &node.endpoint)
    }

    pub(crate) fn name(&self) -> &str {
        &self.connections.opener.server
    }

    pub(crate) fn lockers(&self) -> &Connections {
        &self.connections
    }

    pub(crate) fn readers(&self) -> &Connections {
        &self.readers
    }

    /// A connection older than the locks' may lead to another server, if both go by a host name.
    pub(crate) fn confirmers(&self) -> &Connections {
        self.confirmers.retire_older_than(&self.connections);
        &self.confirmers
    }

    /// The fence counter of a slot that changed hands may be wrong.
    pub(super) fn forget_fence(&self, slot: Slot) {
        self.connections.each(|connection| connection.fences.forget(slot));
    }

    pub(super) fn abandon(&self) {
        if let Some(node) = &self.node {
            node.abandon();
        }
        self.connections.drop_retired();
        self.readers.drop_retired();
        self.confirmers.drop_retired();
        self.wake_ups.abandon();
    }
}
