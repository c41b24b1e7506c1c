//! Confirmations: what a server has granted or renewed counts once enough of its replicas have it.
//!
//! See "How does `replicas` confirm a lock (`WAIT`)?" in DESIGN.md.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::renewals::put;
use super::{Keys, Request, Router};
use crate::backend::redis::batch::confirmations::{confirm, confirm_moving};
use crate::backend::redis::topology::server::Server;
use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::meaning::Failed;
use crate::backend::{Fault, Renewal, Renewed};

impl Router {
    /// Whether what is granted or renewed counts only then.
    pub(crate) fn confirms(&self) -> bool {
        self.topology.opener.replicas > 0
    }

    /// Waits until enough replicas have the lock for as long as the renewal says.
    pub(crate) async fn confirm(&self, renewal: &Renewal) -> Result<(), Fault> {
        let confirmation = Confirmation(renewal);
        let sent = self.send(renewal.attempt.slot, Server::confirmers, &confirmation);
        Box::pin(sent).await.map(|ran| ran.found)
    }

    /// The same of each lease that was renewed. One whose confirmation fails counts as not answered.
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
                let confirmed = async move { (number, this.confirm(&renewal).await) };
                running.spawn_on(confirmed, &self.topology.opener.timers);
            }
        }
        let confirmed = running.join_all().await.into_iter();
        put(&mut outcomes, confirmed.map(|(number, of)| (number, of.map(|()| Renewed::Held))));
        outcomes
    }
}

/// A lock to confirm, on the connections that do nothing else.
struct Confirmation<'a>(&'a Renewal);

impl Request for Confirmation<'_> {
    type Found = ();
    const KEYS: Keys = Keys::One;

    async fn send(
        &self,
        _: &Router,
        connection: &Arc<Connection>,
        is_asking: bool,
    ) -> Result<(), Failed> {
        if is_asking {
            Box::pin(confirm_moving(connection, self.0)).await
        } else {
            confirm(connection, self.0).await
        }
    }
}
