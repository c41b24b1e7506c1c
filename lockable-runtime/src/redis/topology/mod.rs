//! Which server has which locks, as this process knows it.
//!
//! To a request every deployment is a table with the owner of each of the 16 384 hash slots. A single server owns all
//! of them. Behind Sentinels, the elected primary does: a `+switch-master` replaces it, and its connections are
//! abandoned, so that no late answer of the former one counts. In a cluster each node owns some: a `MOVED` moves one
//! slot at once, and soon makes the nodes report all of theirs ([`refreshes`]). One node or Sentinel does not outvote
//! most others ([`votes`]). Each server has its connections and fence counters, which are forgotten for slots that
//! change hands.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch::Receiver;

use self::connections::Connections;
use self::latest_releases::LatestReleases;
use self::sentinels::Sentinels;
use self::server::Server;
use self::slot_owners::SlotOwners;
use self::slots::Slots;
use self::watch::Watch;
use super::connect::address::{self, AddressKind};
use super::connect::endpoint::Endpoint;
use super::connect::opener::Opener;
use super::fault::cluster;
use super::pubsub::revocations::Revocations;
use crate::core::backend::{Attempt, Fault};
use crate::core::process::clock::Moment;
use crate::core::process::together::first_success;
use crate::core::settings::Settings;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::owner::Origin;
use crate::core::types::slot::Slot;

pub(crate) mod connections;
mod elections;
pub(crate) mod latest_releases;
mod map_requests;
mod maps;
mod pace;
mod refreshes;
pub(crate) mod sentinels;
pub(crate) mod server;
pub(crate) mod slot_owners;
mod slots;
mod table;
pub(crate) mod votes;
pub(crate) mod watch;

pub(crate) struct Topology {
    pub(crate) opener: Opener,
    pub(crate) slot_owners: Arc<SlotOwners>,
    pub(crate) revocations: Revocations,
    pub(crate) latest_releases: Option<LatestReleases>,
    pub(crate) found: Discovery,
}

pub(crate) enum Discovery {
    Fixed,
    /// These name the server.
    Elected(Arc<Sentinels>),
    /// These nodes of a cluster know the others.
    Seeds(Vec<Endpoint>),
}

impl Topology {
    pub(crate) fn open(settings: &Settings, background: Handle) -> Result<Arc<Self>, LockError> {
        let (opener, way) = Opener::new(settings, background)?;
        let mut found = Discovery::Fixed;
        let one = |opener: &Opener| SlotOwners::One(Server::new(0, None, opener.clone()));
        let (opener, slot_owners) = match way {
            AddressKind::Fixed => (opener.clone(), one(&opener)),
            AddressKind::Elected(group) => {
                let credentials = settings.sentinel_credentials.clone();
                let watch = Watch::new(Sentinels::new(&opener, group, credentials)?);
                found = Discovery::Elected(Arc::clone(&watch.sentinels));
                let opener = opener.found_by(Arc::new(watch));
                (opener.clone(), one(&opener))
            }
            AddressKind::Sharded(nodes) => {
                let seeds: Vec<_> = nodes.iter().filter_map(address::endpoint_of).collect();
                found = Discovery::Seeds(seeds.clone());
                (opener.clone(), SlotOwners::Shared(Slots::new(opener, seeds)))
            }
        };
        let slot_owners = Arc::new(slot_owners);
        let any = Arc::downgrade(&slot_owners);
        let is_elected = matches!(found, Discovery::Elected(_));
        Ok(Arc::new(Self {
            revocations: Revocations::new(Arc::new(move |attempt| {
                any.upgrade()?.any_opener(attempt)
            })),
            latest_releases: is_elected.then(LatestReleases::default),
            opener,
            slot_owners,
            found,
        }))
    }

    /// Changes whenever another server becomes the primary; `None` without elections.
    pub(crate) fn elections(&self) -> Option<Receiver<u64>> {
        match &self.found {
            Discovery::Elected(sentinels) => Some(sentinels.elections.changes()),
            Discovery::Fixed | Discovery::Seeds(_) => None,
        }
    }

    pub(crate) async fn servers(&self) -> Result<Vec<Arc<Server>>, Fault> {
        self.filled().await?;
        Ok(self.slot_owners.servers())
    }

    /// The servers that own slots which moved after `moment`, by a fresh slot map.
    pub(crate) async fn moved_since(&self, moment: Moment) -> Result<Vec<Arc<Server>>, Fault> {
        self.slot_owners.refreshed().await?;
        let mut moved: Vec<_> = Slot::all()
            .filter(|slot| self.slot_owners.moved_at(*slot) > moment)
            .filter_map(|slot| self.slot_owners.number(slot))
            .collect();
        moved.dedup();
        let servers = self.slot_owners.servers().into_iter();
        Ok(servers.filter(|server| moved.contains(&server.number)).collect())
    }

    /// After an election: abandons the old connections, so that new ones lead to the new primary.
    pub(crate) fn was_elected(&self) {
        for server in self.slot_owners.servers() {
            server.connections.abandon();
            server.readers.drop_retired();
            server.confirmers.drop_retired();
        }
    }

    pub(crate) async fn has_no_slots(&self, server: &Server) -> bool {
        let Ok(servers) = self.servers().await else { return false };
        servers.iter().all(|other| other.number != server.number)
    }

    /// The table has no server for the slot. Waits until an empty table is filled. `None`: now it has one; an error: it
    /// could not be filled.
    pub(crate) async fn unserved(&self, slot: Slot) -> Result<Option<Fault>, Fault> {
        let was_empty = self.slot_owners.servers().is_empty();
        self.filled().await?;
        let is_served = was_empty && self.slot_owners.server(slot).is_some();
        Ok((!is_served).then(|| cluster::unserved(&self.opener.server, slot)))
    }

    /// Waits for the first answers, if there are none yet.
    async fn filled(&self) -> Result<(), Fault> {
        if self.slot_owners.servers().is_empty() {
            self.slot_owners.refreshed().await
        } else {
            Ok(())
        }
    }

    /// A server's answer. While it is missing, the others are asked whether that server still has its slots: a hanging
    /// server breaks no connection.
    pub(crate) async fn doubting<F: Future>(&self, answer: F) -> F::Output {
        let mut answer = pin!(answer);
        if !self.slot_owners.are_shared() {
            return answer.await;
        }
        // Boxed, because every call would carry its size.
        Box::pin(async {
            let patience = self.opener.command_deadline / 4;
            loop {
                if let Some(answer) = self.opener.within(patience, answer.as_mut()).await {
                    return answer;
                }
                self.slot_owners.refresh_soon();
            }
        })
        .await
    }

    /// Checks that the caller can use the servers: they are known, and one of them is connected to. Others may be down.
    pub(crate) async fn connect(&self) -> Result<(), Fault> {
        self.connect_over(Server::lockers).await?;
        // One that has no `WAIT` is refused here.
        if self.opener.replicas > 0 { self.connect_over(Server::confirmers).await } else { Ok(()) }
    }

    async fn connect_over(&self, over: fn(&Server) -> &Connections) -> Result<(), Fault> {
        let servers = self.servers().await?;
        let all = self.opener.connect_deadline;
        let limit = if servers.len() > 1 { all / 2 } else { all };
        let attempts = servers.into_iter().enumerate().map(|(number, server)| async move {
            if number > 0 {
                // The one before has failed, or hangs.
                self.slot_owners.refresh_soon();
            }
            let connections = over(&server);
            let connected = self.opener.within(limit, connections.ready()).await;
            match connected.unwrap_or_else(|| Err(connections.late())) {
                Err(fault) if fault.kind == LockErrorKind::Unavailable => Err(fault),
                // A refusal is an answer, too.
                answer => Ok(answer.map(drop)),
            }
        });
        let answer = first_success(attempts, || self.opener.client.stagger()).await;
        let none = || cluster::without_slots(&self.opener.server);
        answer.unwrap_or_else(|last| Err(last.unwrap_or_else(none)))
    }

    /// Subscribes to wake-ups for this attempt, if the slot's server allows it. If not, one of the line's regular
    /// queries is granted its turn.
    ///
    /// The subscription comes first:
    /// 1. the process subscribes to its channel, and the server confirms it;
    /// 2. the request is sent, and the attempt is queued;
    /// 3. the wake-up is published, and received.
    ///
    /// The other way round, a wake-up between the two would reach no process.
    /// Tests: `a_call_hears_of_the_first_grant_at_once`, `an_unconfirmed_subscription_costs_at_most_one_recheck`.
    pub(crate) async fn listen_for(&self, attempt: &Attempt) {
        let Some((server, origin)) = self.listening(attempt) else { return };
        Box::pin(server.wake_ups.listen(attempt.slot, origin)).await;
    }

    /// As [`listen_for`](Self::listen_for), but does not wait, because a release would wait too. The next query of a
    /// line makes up for a missed wake-up.
    pub(crate) fn start_listening_for(&self, attempt: &Attempt) {
        if let Some((server, origin)) = self.listening(attempt) {
            server.wake_ups.start_listening(attempt.slot, origin);
        }
    }

    fn listening(&self, attempt: &Attempt) -> Option<(Arc<Server>, Origin)> {
        if !self.opener.reports.are_received() {
            return None;
        }
        Some((self.slot_owners.server(attempt.slot)?, Origin::of(&attempt.owner)?))
    }

    /// The caller gave up on an answer of the slot's server after that time.
    pub(crate) fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.slot_owners.refresh_soon();
        match self.slot_owners.server(slot) {
            Some(server) => {
                server.connections.unanswered(waited);
                Fault::no_answer(&server.connections.opener.server, waited)
            }
            None => Fault::no_answer(&self.opener.server, waited),
        }
    }
}
