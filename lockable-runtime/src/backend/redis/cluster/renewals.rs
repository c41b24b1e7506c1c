//! Renewals of a cluster: those of a node go together, and each follows its own slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

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
        let mut outcomes: Vec<Option<Outcome>> = renewals.iter().map(|_| None).collect();
        let mut open: Vec<usize> = (0..renewals.len()).collect();
        for _ in 0..ROUNDS {
            let (mut again, mut moving) = (Vec::new(), JoinSet::new());
            for (member, places) in self.by_member(renewals, &open) {
                let batch: Vec<_> =
                    places.iter().filter_map(|place| renewals.get(*place).cloned()).collect();
                let renewed = self.renew_at(&member, &batch).await;
                for ((place, renewal), outcome) in places.into_iter().zip(batch).zip(renewed) {
                    match self.next(&member, &renewal, outcome) {
                        Next::Settled(outcome) => put(&mut outcomes, place, outcome),
                        Next::Elsewhere(fault) => {
                            put(&mut outcomes, place, Err(fault));
                            again.push(place);
                        }
                        Next::InParts => self.start_in_parts(&mut moving, place, renewal),
                    }
                }
            }
            while let Some(renewed) = moving.join_next().await {
                // It is cancelled with its runtime alone.
                if let Ok((place, outcome)) = renewed {
                    put(&mut outcomes, place, outcome);
                }
            }
            open = again;
            if open.is_empty() {
                break;
            }
        }
        let unserved = |slot| Err(cluster::unserved(&self.opener.server, slot));
        let each = outcomes.into_iter().zip(renewals);
        Ok(each.map(|(outcome, of)| outcome.unwrap_or_else(|| unserved(of.attempt.slot))).collect())
    }

    /// Renews a lease whose slot moves beside the others, and not for long: the node to which it moves may be slow,
    /// or hang, and those of the batch that are renewed are not to wait for it. The next renewal asks it again.
    fn start_in_parts(
        &self,
        moving: &mut JoinSet<(usize, Outcome)>,
        place: usize,
        renewal: Renewal,
    ) {
        let Some(this) = self.this.upgrade() else { return };
        let ttl = renewal.ttl.unwrap_or(renewal.attempt.ttl).duration();
        // Half of what the batch is waited for.
        let limit = self.opener.command_deadline.min(ttl / 9) / 2;
        let renewed = async move {
            let renewed = this.opener.within(limit, this.renew_in_parts(&renewal)).await;
            (place, renewed.unwrap_or_else(|| Err(Fault::no_answer(&this.opener.server, limit))))
        };
        moving.spawn_on(renewed, &self.opener.timers);
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

    /// What follows from the answer about a lease.
    fn next(&self, member: &Member, renewal: &Renewal, outcome: Outcome) -> Next {
        let Err(fault) = outcome else { return Next::Settled(outcome) };
        let slot = renewal.attempt.slot;
        match Meaning::of(&fault, member.place()) {
            Meaning::Moved(place) => {
                self.move_slot(slot, member.place(), &place);
                Next::Elsewhere(fault)
            }
            Meaning::Asks(_) | Meaning::Split => Next::InParts,
            Meaning::Stays if self.member(slot).is_none_or(|now| now.number != member.number) => {
                Next::Elsewhere(fault)
            }
            Meaning::Passes => {
                // The node may be cut off from the others, which have its slots by now.
                self.refresh_soon();
                Next::Settled(Err(fault))
            }
            Meaning::Stays => Next::Settled(Err(fault)),
        }
    }
}

/// What follows from an answer.
enum Next {
    Settled(Outcome),
    /// It is asked for at another node, because of this fault.
    Elsewhere(Fault),
    InParts,
}

fn put(outcomes: &mut [Option<Outcome>], place: usize, outcome: Outcome) {
    if let Some(of) = outcomes.get_mut(place) {
        *of = Some(outcome);
    }
}
