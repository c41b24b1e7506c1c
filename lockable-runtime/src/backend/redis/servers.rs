//! The server that locks are on, and how a request gets an answer there.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;

use super::batch::renewals;
use super::cluster::{Cluster, Hops, Member};
use super::connections::Connections;
use super::latest_releases::LatestReleases;
use super::reach::opener::Opener;
use super::wait::grants::Grants;
use super::wait::revocations::Revocations;
use super::wire::connection::Connection;
use crate::backend::{Attempt, ChangeHook, Fault, Hook, Listener, Renewal, Renewed};
use crate::types::clock::Moment;
use crate::types::slot::Slot;
use crate::types::token::Origin;

/// Where locks are.
#[derive(Clone)]
pub(super) enum Servers {
    /// One server, or the primary that Sentinels name.
    One(Arc<One>),
    /// The nodes of a cluster.
    Cluster(Arc<Cluster>),
}

pub(super) struct One {
    pub(super) connections: Connections,
    /// Those that look at locks.
    pub(super) readers: Connections,
    grants: Grants,
    pub(super) revocations: Revocations,
    /// Only where Sentinels name the server.
    latest_releases: Option<LatestReleases>,
}

/// A server that has locks of its own.
#[derive(Clone)]
pub(super) enum Primary {
    One(Arc<One>),
    Node(Arc<Member>),
}

impl Primary {
    /// The connections that look at its locks.
    pub(super) fn readers(&self) -> &Connections {
        match self {
            Self::One(one) => &one.readers,
            Self::Node(member) => &member.readers,
        }
    }

    /// Where it is, without credentials.
    pub(super) fn server(&self) -> &str {
        &self.readers().opener.server
    }
}

/// What a verb found, and what became of the request before the one that counts.
pub(super) struct Ran<T> {
    pub(super) found: T,
    pub(super) before: Before<T>,
}

pub(super) enum Before<T> {
    /// There was no other request.
    Nothing,
    /// Its answer was lost.
    Unknown,
    /// A server answered this that was left by then.
    Left(T),
}

impl Servers {
    pub(super) fn new(opener: Opener, background: Handle) -> Self {
        if opener.seeds().is_some() {
            return Self::Cluster(Cluster::new(opener, background));
        }
        let place = opener.clone();
        Self::One(Arc::new(One {
            revocations: Revocations::new(Arc::new(move |_| Some(place.clone()))),
            grants: Grants::new(opener.clone()),
            latest_releases: opener.changes().map(|_| LatestReleases::default()),
            readers: Connections::new(opener.for_reading(), background.clone()),
            connections: Connections::new(opener, background),
        }))
    }

    /// Runs the verb on this runtime's connection to the slot's server; once more, on a new one, when that broke,
    /// as often as the server was left, and as its answers say where it is a node of a cluster.
    ///
    /// Verbs may be repeated: the owner token makes the second request find what the first one did.
    pub(super) async fn run<T>(
        &self,
        slot: Slot,
        verb: impl AsyncFn(&Self, &Arc<Connection>) -> Result<T, Fault>,
    ) -> Result<Ran<T>, Fault> {
        let (mut before, mut has_broken, mut hops) = (Before::Nothing, false, None);
        loop {
            let connection = self.ready(slot, &mut hops).await?;
            let outcome = match self {
                Self::One(_) => connection.unless_left(verb(self, &connection)).await,
                // Boxed, because every call would carry its size.
                Self::Cluster(cluster) => {
                    let answer = connection.unless_left(verb(self, &connection));
                    Box::pin(cluster.doubting(answer)).await
                }
            };
            before = match outcome {
                Some(Ok(found)) if !connection.is_left() => return Ok(Ran { found, before }),
                Some(Ok(found)) => Before::Left(found),
                None => Before::Unknown,
                Some(Err(_)) if connection.is_left() => Before::Unknown,
                Some(Err(_)) if connection.is_retired() && !has_broken => {
                    has_broken = true;
                    Before::Unknown
                }
                Some(Err(fault)) => {
                    self.follow(slot, &connection, fault, &mut hops).await?;
                    before
                }
            };
        }
    }

    async fn ready(&self, slot: Slot, hops: &mut Option<Hops>) -> Result<Arc<Connection>, Fault> {
        match self {
            Self::One(one) => one.connections.ready().await,
            // Boxed, because every call would carry its size.
            Self::Cluster(cluster) => {
                let hops = hops.get_or_insert_with(Hops::begin);
                Box::pin(cluster.ready(slot, hops)).await
            }
        }
    }

    /// What follows from a fault; the error is that it counts.
    async fn follow(
        &self,
        slot: Slot,
        connection: &Connection,
        fault: Fault,
        hops: &mut Option<Hops>,
    ) -> Result<(), Fault> {
        match self {
            Self::One(_) => Err(fault),
            Self::Cluster(cluster) => {
                let hops = hops.get_or_insert_with(Hops::begin);
                Box::pin(cluster.follow(slot, connection, fault, hops)).await
            }
        }
    }

    /// The cluster where a verb has to be done in parts, because its slot moves key by key.
    ///
    /// # Errors
    /// With the fault, where that is not the reason.
    pub(super) fn in_parts(&self, fault: Fault) -> Result<&Cluster, Fault> {
        match self {
            Self::Cluster(cluster) if Cluster::is_moving(&fault) => Ok(cluster),
            Self::Cluster(_) | Self::One(_) => Err(fault),
        }
    }

    /// Renews leases, or looks at them; there is an outcome for each.
    pub(super) async fn renew(
        &self,
        renewals: Vec<Renewal>,
    ) -> Result<Vec<Result<Renewed, Fault>>, Fault> {
        let (Self::One(_), Some(first)) = (self, renewals.first()) else {
            return self.renew_each(&renewals).await;
        };
        let slot = first.attempt.slot;
        let renew = async move |_: &Self, connection: &Arc<Connection>| {
            renewals::renew(connection, &renewals).await
        };
        self.run(slot, renew).await.map(|ran| ran.found)
    }

    /// The same in a cluster, where each lease has a server of its own.
    async fn renew_each(&self, renewals: &[Renewal]) -> Result<Vec<Result<Renewed, Fault>>, Fault> {
        match self {
            Self::One(_) => Ok(Vec::new()),
            Self::Cluster(cluster) => Box::pin(cluster.renew(renewals)).await,
        }
    }

    /// Makes sure that the servers can be used from the calling task.
    pub(super) async fn connect(&self) -> Result<(), Fault> {
        match self {
            Self::One(one) => one.connections.ready().await.map(drop),
            Self::Cluster(cluster) => Box::pin(cluster.connect()).await,
        }
    }

    /// Has this called with every grant of that origin; answers once that is sure. In a cluster each request for
    /// a place in a queue makes that sure for itself.
    pub(super) async fn listen(
        &self,
        origin: Origin,
        hook: Weak<dyn Listener>,
    ) -> Result<(), Fault> {
        match self {
            Self::One(one) => one.grants.listen(origin, hook).await,
            Self::Cluster(cluster) => {
                cluster.listen(hook);
                Ok(())
            }
        }
    }

    /// Makes sure that a grant to this attempt is heard, before it is queued.
    pub(super) async fn listen_for(&self, attempt: &Attempt) {
        match self {
            Self::One(_) => {}
            Self::Cluster(cluster) => Box::pin(cluster.listen_for(attempt)).await,
        }
    }

    /// The same without waiting, where a release would wait. A grant that is not heard is found when its line asks.
    pub(super) fn start_listening_for(&self, attempt: &Attempt) {
        match self {
            Self::One(_) => {}
            Self::Cluster(cluster) => cluster.start_listening_for(attempt),
        }
    }

    /// All servers that have locks.
    pub(super) async fn primaries(&self) -> Result<Vec<Primary>, Fault> {
        Ok(match self {
            Self::One(one) => vec![Primary::One(Arc::clone(one))],
            Self::Cluster(cluster) => nodes(Box::pin(cluster.masters()).await?),
        })
    }

    /// Those that have locks which were elsewhere before.
    pub(super) async fn moved_since(&self, moment: Moment) -> Result<Vec<Primary>, Fault> {
        Ok(match self {
            Self::One(_) => Vec::new(),
            Self::Cluster(cluster) => nodes(Box::pin(cluster.moved_since(moment)).await?),
        })
    }

    /// Whether it has no locks any more.
    pub(super) async fn is_left(&self, primary: &Primary) -> bool {
        let Primary::Node(node) = primary else { return false };
        let Ok(primaries) = self.primaries().await else { return false };
        let is_it =
            |other: &Primary| matches!(other, Primary::Node(it) if it.number == node.number);
        !primaries.iter().any(is_it)
    }

    pub(super) fn when_connected(&self, hook: Hook) {
        match self {
            Self::One(one) => one.connections.when_connected(hook),
            Self::Cluster(cluster) => cluster.when_connected(hook),
        }
    }

    pub(super) fn when_changed(&self, hook: ChangeHook) {
        match self {
            Self::One(one) => one.connections.when_changed(hook),
            Self::Cluster(cluster) => cluster.when_changed(hook),
        }
    }

    /// When the slot's server was last left for another one; zero if never.
    pub(super) fn left_at(&self, slot: Slot) -> Moment {
        match self {
            Self::One(one) => one.connections.left_at(),
            Self::Cluster(cluster) => cluster.moved_at(slot),
        }
    }

    /// Which server has the slot.
    pub(super) fn place(&self, slot: Slot) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Cluster(cluster) => cluster.place(slot),
        }
    }

    /// The calling task gave up on an answer after that time.
    pub(super) fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        match self {
            Self::One(one) => {
                one.connections.unanswered(waited);
                Fault::no_answer(&self.opener().server, waited)
            }
            Self::Cluster(cluster) => cluster.unanswered(slot, waited),
        }
    }

    /// Where Sentinels name the server.
    pub(super) fn latest_releases(&self) -> Option<&LatestReleases> {
        match self {
            Self::One(one) => one.latest_releases.as_ref(),
            Self::Cluster(_) => None,
        }
    }

    /// What opening a connection takes.
    pub(super) fn opener(&self) -> &Opener {
        match self {
            Self::One(one) => &one.connections.opener,
            Self::Cluster(cluster) => &cluster.opener,
        }
    }

    pub(super) fn background(&self) -> &Handle {
        &self.opener().timers
    }
}

fn nodes(members: Vec<Arc<Member>>) -> Vec<Primary> {
    members.into_iter().map(Primary::Node).collect()
}

impl<T> Before<T> {
    /// The same about another value.
    pub(super) fn map<R>(self, change: impl FnOnce(T) -> R) -> Before<R> {
        match self {
            Self::Nothing => Before::Nothing,
            Self::Unknown => Before::Unknown,
            Self::Left(found) => Before::Left(change(found)),
        }
    }
}
