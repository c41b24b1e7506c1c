//! Renewals: sent together to each server, redirected for each slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Request, Router};
use crate::core::backend::{Fault, Renewal, Renewed};
use crate::core::types::slot::Slot;
use crate::redis::batch::renewals;
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::{Failed, Meaning};

/// How often renewals are redirected to moved slots; the next renewal continues that.
const ROUNDS: usize = 3;

/// What a renewal found, or its fault and what follows.
type Outcome = Result<Renewed, (Fault, NextStep)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum NextStep {
    Settled,
    Elsewhere,
    InParts,
}

impl Router {
    /// Renews leases, or only checks them. Returns an outcome for each: a fault of one server or lease fails no other.
    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Vec<Result<Renewed, Fault>> {
        let mut outcomes = self.renew_by_server(renewals).await;
        for _ in 1..ROUNDS {
            let open = those(&outcomes, NextStep::Elsewhere);
            if open.is_empty() {
                break;
            }
            let again = Box::pin(self.renew_by_server(&picked(renewals, &open))).await;
            put(&mut outcomes, open.into_iter().zip(again));
        }
        let moving = those(&outcomes, NextStep::InParts);
        if !moving.is_empty() {
            let renewed = Box::pin(self.renew_moving(renewals, moving)).await;
            put(&mut outcomes, renewed);
        }
        outcomes.into_iter().map(|outcome| outcome.map_err(|(fault, _)| fault)).collect()
    }

    async fn renew_by_server(&self, renewals: &[Renewal]) -> Vec<Outcome> {
        let server = |renewal: &Renewal| self.topology.slot_owners.number(renewal.attempt.slot);
        let Some(first) = renewals.first() else { return Vec::new() };
        if renewals.iter().all(|renewal| server(renewal) == server(first)) {
            return self.renew_together(first.attempt.slot, renewals).await;
        }
        let mut groups = BTreeMap::<_, Vec<usize>>::new();
        for (endpoint, renewal) in renewals.iter().enumerate() {
            groups.entry(server(renewal)).or_default().push(endpoint);
        }
        let mut outcomes: Vec<Outcome> = renewals.iter().map(|_| Ok(Renewed::Absent)).collect();
        for group in groups.into_values() {
            let batch = picked(renewals, &group);
            let slot = batch.first().map_or_else(Slot::default, |first| first.attempt.slot);
            let renewed = Box::pin(self.renew_together(slot, &batch)).await;
            put(&mut outcomes, group.into_iter().zip(renewed));
        }
        outcomes
    }

    async fn renew_together(&self, slot: Slot, renewals: &[Renewal]) -> Vec<Outcome> {
        match self.run(slot, &Together(renewals)).await {
            Ok(ran) => {
                let (connection, renewed) = ran.found;
                let each = renewals.iter().zip(renewed);
                each.map(|(renewal, outcome)| self.judge(&connection, renewal, outcome)).collect()
            }
            Err(fault) => {
                renewals.iter().map(|_| Err((fault.clone(), NextStep::Settled))).collect()
            }
        }
    }

    fn judge(
        &self,
        connection: &Connection,
        renewal: &Renewal,
        outcome: Result<Renewed, Failed>,
    ) -> Outcome {
        let slot = renewal.attempt.slot;
        outcome.map_err(|Failed { fault, meaning }| {
            let next = match meaning {
                Meaning::Moved(endpoint) => {
                    self.topology.slot_owners.move_slot(slot, connection, &endpoint);
                    NextStep::Elsewhere
                }
                Meaning::Asks(_) | Meaning::Split => NextStep::InParts,
                Meaning::Forgotten => NextStep::Elsewhere,
                Meaning::Stays if !self.topology.slot_owners.leads_to(slot, connection) => {
                    NextStep::Elsewhere
                }
                Meaning::Passes => {
                    // The node may be cut off from the others, which have its slots by now.
                    self.topology.slot_owners.refresh_soon();
                    NextStep::Settled
                }
                Meaning::Stays => NextStep::Settled,
            };
            (fault, next)
        })
    }

    /// Renews leases whose slots move, concurrently and with a short limit: the node to which a slot moves may hang,
    /// and the rest of the batch does not wait for it. The next renewal tries again.
    async fn renew_moving(
        &self,
        renewals: &[Renewal],
        moving: Vec<usize>,
    ) -> Vec<(usize, Outcome)> {
        let opener = &self.topology.opener;
        let mut running = JoinSet::new();
        for (endpoint, renewal) in moving.iter().zip(picked(renewals, &moving)) {
            let ttl = renewal.ttl.unwrap_or(renewal.attempt.ttl).duration();
            // Half of what the batch is waited for.
            let limit = opener.command_deadline.min(ttl / 9) / 2;
            let this = self.clone();
            let endpoint = *endpoint;
            let renewed = async move {
                let opener = &this.topology.opener;
                let renewed = opener.within(limit, this.renew_in_parts(&renewal)).await;
                let renewed =
                    renewed.unwrap_or_else(|| Err(Fault::no_answer(&opener.server, limit)));
                (endpoint, renewed.map_err(|fault| (fault, NextStep::Settled)))
            };
            running.spawn_on(renewed, &opener.timers);
        }
        running.join_all().await
    }
}

struct Together<'a>(&'a [Renewal]);

impl Request for Together<'_> {
    /// With the connection over which that was found.
    type Found = (Arc<Connection>, Vec<Result<Renewed, Failed>>);

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Self::Found, Failed> {
        let renewed = renewals::renew(connection, self.0).await?;
        Ok((Arc::clone(connection), renewed))
    }
}

/// The indices of the outcomes with that next step.
fn those(outcomes: &[Outcome], next: NextStep) -> Vec<usize> {
    let is_it = |outcome: &Outcome| matches!(outcome, Err((_, of)) if *of == next);
    outcomes.iter().enumerate().filter(|(_, outcome)| is_it(outcome)).map(|(at, _)| at).collect()
}

fn picked(renewals: &[Renewal], endpoints: &[usize]) -> Vec<Renewal> {
    endpoints.iter().filter_map(|endpoint| renewals.get(*endpoint).cloned()).collect()
}

pub(super) fn put<T>(outcomes: &mut [T], found: impl IntoIterator<Item = (usize, T)>) {
    for (endpoint, outcome) in found {
        if let Some(of) = outcomes.get_mut(endpoint) {
            *of = outcome;
        }
    }
}
