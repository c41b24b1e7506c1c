//! Renewals of a cluster: those of a node go together, and each follows its own slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::answers::Meaning;
use super::nodes::Cluster;
use super::table::Member;
use crate::backend::redis::batch::renewals;
use crate::backend::redis::fault::cluster;
use crate::backend::{Fault, Renewal, Renewed};

/// How often renewals whose slots have moved are sent elsewhere; the next renewal continues that.
const ROUNDS: usize = 3;

type Outcome = Result<Renewed, Fault>;

impl Cluster {
    /// Returns an outcome for each: what one node does not answer, or answers for one lease, fails no other.
    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Outcome>, Fault> {
        if self.table().is_empty() {
            self.refreshed().await?;
        }
        let unserved =
            |renewal: &Renewal| Err(cluster::unserved(&self.opener.server, renewal.attempt.slot));
        let mut outcomes: Vec<Outcome> = renewals.iter().map(unserved).collect();
        let mut open: Vec<usize> = (0..renewals.len()).collect();
        for _ in 0..ROUNDS {
            let mut again = Vec::new();
            for (member, places) in self.by_member(renewals, &open) {
                let batch: Vec<_> =
                    places.iter().filter_map(|place| renewals.get(*place).cloned()).collect();
                let renewed = self.renew_at(&member, &batch).await;
                for ((place, renewal), outcome) in places.into_iter().zip(&batch).zip(renewed) {
                    match self.settled(&member, renewal, outcome).await {
                        Some(outcome) => {
                            if let Some(of) = outcomes.get_mut(place) {
                                *of = outcome;
                            }
                        }
                        None => again.push(place),
                    }
                }
            }
            open = again;
            if open.is_empty() {
                break;
            }
        }
        Ok(outcomes)
    }

    /// The places of the renewals for each node.
    fn by_member(&self, renewals: &[Renewal], open: &[usize]) -> Vec<(Arc<Member>, Vec<usize>)> {
        let mut groups: BTreeMap<usize, (Arc<Member>, Vec<usize>)> = BTreeMap::new();
        for place in open {
            let renewal = renewals.get(*place);
            if let Some(member) = renewal.and_then(|renewal| self.member(renewal.attempt.slot)) {
                groups.entry(member.number).or_insert((member, Vec::new())).1.push(*place);
            }
        }
        groups.into_values().collect()
    }

    /// At one node; once more, on a new connection, when that broke.
    async fn renew_at(&self, member: &Member, batch: &[Renewal]) -> Vec<Outcome> {
        let mut has_broken = false;
        let fault = loop {
            let connection = match member.connections.ready().await {
                Ok(connection) => connection,
                Err(fault) => break fault,
            };
            match connection.unless_left(renewals::renew(&connection, batch)).await {
                Some(Ok(outcomes)) if !connection.is_left() => return outcomes,
                Some(Err(_)) if connection.is_retired() && !has_broken => has_broken = true,
                Some(Err(fault)) => break fault,
                Some(Ok(_)) | None => break cluster::left(&member.connections.opener.server),
            }
        };
        self.refresh_soon();
        batch.iter().map(|_| Err(fault.clone())).collect()
    }

    /// The outcome of a lease; `None` where it has to be asked for elsewhere.
    async fn settled(
        &self,
        member: &Member,
        renewal: &Renewal,
        outcome: Outcome,
    ) -> Option<Outcome> {
        let Err(fault) = outcome else { return Some(outcome) };
        let slot = renewal.attempt.slot;
        match Meaning::of(&fault, member.place()) {
            Meaning::Moved(place) => {
                self.move_slot(slot, member.place(), &place);
                None
            }
            Meaning::Asks(_) | Meaning::Split => Some(self.renew_in_parts(renewal).await),
            Meaning::Stays if self.member(slot).is_none_or(|now| now.number != member.number) => {
                None
            }
            Meaning::Passes | Meaning::Stays => Some(Err(fault)),
        }
    }
}
