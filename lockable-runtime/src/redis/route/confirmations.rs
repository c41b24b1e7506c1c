//! A grant or a renewal counts once enough replicas have it.
//!
//! See "How does `replicas` confirm a lock (`WAIT`)?" in DESIGN.md.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::renewals::put;
use super::{KeyCount, Request, Router};
use crate::core::backend::{Attempt, Fault, Renewal, Renewed};
use crate::redis::batch::confirmations::{confirm, confirm_moving};
use crate::redis::fault;
use crate::redis::topology::server::Server;
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;

impl Router {
    pub(crate) fn confirms(&self) -> bool {
        self.topology.opener.replicas > 0
    }

    pub(crate) async fn confirm(&self, attempt: Arc<Attempt>) -> Result<(), Fault> {
        match self.confirm_one(&Renewal { attempt, ttl: None }).await? {
            Renewed::Held => Ok(()),
            Renewed::Absent | Renewed::Taken => Err(fault::gone(&self.topology.opener.server)),
        }
    }

    async fn confirm_one(&self, renewal: &Renewal) -> Result<Renewed, Fault> {
        let confirmation = Confirmation(renewal);
        let sent = self.send(renewal.attempt.slot, Server::confirmers, &confirmation);
        Box::pin(sent).await.map(|ran| ran.found)
    }

    /// Waits until replicas have each renewed lease. An unconfirmed renewal counts as unanswered.
    pub(crate) async fn confirm_each(
        &self,
        renewals: Vec<Renewal>,
        mut outcomes: Vec<Result<Renewed, Fault>>,
    ) -> Vec<Result<Renewed, Fault>> {
        let mut running = JoinSet::new();
        for (number, (renewal, outcome)) in renewals.into_iter().zip(&outcomes).enumerate() {
            // One that only looks makes no lease longer.
            if renewal.ttl.is_some() && matches!(outcome, Ok(Renewed::Held)) {
                let this = self.clone();
                let confirmed = async move { (number, this.confirm_one(&renewal).await) };
                running.spawn_on(confirmed, &self.topology.opener.timers);
            }
        }
        put(&mut outcomes, running.join_all().await);
        outcomes
    }
}

struct Confirmation<'a>(&'a Renewal);

impl Request for Confirmation<'_> {
    type Found = Renewed;
    const KEYS: KeyCount = KeyCount::One;

    async fn send(&self, connection: &Arc<Connection>, is_asking: bool) -> Result<Renewed, Failed> {
        if is_asking {
            Box::pin(confirm_moving(connection, self.0)).await
        } else {
            confirm(connection, self.0).await
        }
    }
}
