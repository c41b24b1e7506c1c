//! Routes a request to the server of its slot, and on as the replies say.
//!
//! A request names a slot. The table of slot owners says which server has it, and that server's connection sends the
//! request. Most replies end it there. A redirect is followed, and a `MOVED` also changes the table. A broken
//! connection is replaced once, and errors that pass are retried until the command deadline. Every request may be sent
//! twice, because its owner token makes the second find what the first did. The caller learns if the first answer is
//! unknown, or came from a server that was left meanwhile ([`Before`]): the lock may be granted there. A request about
//! several keys of a moving slot is divided ([`in_parts`]).
//!
//! See "Why not the cluster connection of the `redis` crate?" in DESIGN.md.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use self::hops::Hops;
use super::fault;
use super::topology::Topology;
use super::topology::connections::Connections;
use super::topology::server::Server;
use super::wire::connection::Connection;
use super::wire::meaning::{Failed, Meaning};
use crate::core::backend::epochs::Epoch;
use crate::core::backend::{Fault, Release};
use crate::core::types::error::LockErrorKind;
use crate::core::types::slot::Slot;

mod confirmations;
mod hops;
mod in_parts;
mod renewals;

pub(crate) use self::in_parts::send_one;

#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) topology: Arc<Topology>,
}

/// What a request found, and what an earlier sending of it did.
pub(crate) struct Ran<T> {
    pub(crate) found: T,
    pub(crate) before: Before<T>,
    /// The epoch in which it was found, if the server can be left.
    pub(crate) epoch: Option<Arc<Epoch>>,
}

pub(crate) enum Before<T> {
    /// No earlier sending had an effect.
    Nothing,
    Unknown,
    /// The answer of a server that was abandoned by then.
    Left(T),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyCount {
    /// It can follow its key while the slot moves.
    One,
    /// They may be apart while the slot moves.
    Several,
}

type Over = fn(&Server) -> &Connections;

/// A request to a slot's server. It may be repeated: its owner token makes the second find what the first did.
pub(crate) trait Request: Sync {
    type Found: Send;
    const KEYS: KeyCount = KeyCount::Several;

    /// `is_asking`: whether the slot only moves to that server; never for several keys.
    fn send(
        &self,
        connection: &Arc<Connection>,
        is_asking: bool,
    ) -> impl Future<Output = Result<Self::Found, Failed>> + Send;

    /// Repeats this request as requests of one key each, after it has `failed` because its slot moves key by key.
    fn in_parts(
        &self,
        _: &Router,
        failed: Failed,
    ) -> impl Future<Output = Result<Self::Found, Failed>> + Send {
        ready(Err(failed))
    }
}

impl Router {
    pub(crate) async fn run<R: Request>(
        &self,
        slot: Slot,
        request: &R,
    ) -> Result<Ran<R::Found>, Fault> {
        self.send(slot, Server::lockers, request).await
    }

    /// Sends a request to the slot's server, over the connection of the caller's runtime.
    ///
    /// | the answer | the server | what happens next |
    /// |---|---|---|
    /// | found | has the slot | done |
    /// | found | was abandoned meanwhile | again, after [`Before::Left`] |
    /// | none, or an error | was abandoned meanwhile | again, after [`Before::Unknown`] |
    /// | the connection broke | is perhaps there | again over a new one, after [`Before::Unknown`]; the second time as below |
    /// | `MOVED` | names another one | the table may learn that; again to the owner in the table, [five times](Hops::redirect) at most |
    /// | `ASK`, about one key | names another one | behind `ASKING` there, which the table does not learn |
    /// | `TRYAGAIN`, about one key | is one of two | again after a pause |
    /// | `NOSCRIPT` | forgot the scripts | again with their texts |
    /// | `CLUSTERDOWN`, `LOADING`, … , or broken twice | may pass | the table is refreshed; again after a [pause](Hops::pause), until the command deadline |
    /// | any other error | – | the fault is returned |
    ///
    /// Of all broken connections and `NOSCRIPT`s only the first is repeated at once. If one server has all slots, every
    /// other fault is returned.
    async fn send<R: Request>(
        &self,
        slot: Slot,
        over: Over,
        request: &R,
    ) -> Result<Ran<R::Found>, Fault> {
        // Boxed, because every call would carry its size and hardly one needs it.
        let mut before = None::<Box<Before<R::Found>>>;
        let mut hops = Hops::begin();
        loop {
            let connection = self.connection(slot, over, &mut hops).await?;
            // Pinned here, because each future around them would take their space once more.
            let answer = pin!(self.send_to(&connection, request, hops.is_asking()));
            let answer = pin!(connection.unless_abandoned(answer));
            before = match self.topology.doubting(answer).await {
                Some(Ok(found)) if !connection.is_abandoned() => {
                    let before = before.map_or(Before::Nothing, |before| *before);
                    return Ok(Ran { found, before, epoch: connection.target.epoch.clone() });
                }
                Some(Ok(found)) => Some(Box::new(Before::Left(found))),
                None => Some(Box::new(Before::Unknown)),
                Some(Err(_)) if connection.is_abandoned() => Some(Box::new(Before::Unknown)),
                Some(Err(_)) if connection.is_retired() && hops.breaks() => {
                    Some(Box::new(Before::Unknown))
                }
                Some(Err(failed)) => {
                    // Boxed, because every call would carry its size and hardly one needs it.
                    Box::pin(self.follow(slot, &connection, failed, R::KEYS, &mut hops)).await?;
                    before
                }
            };
        }
    }

    /// Sends a request to one server, or in parts if the slot moves key by key.
    async fn send_to<R: Request>(
        &self,
        connection: &Arc<Connection>,
        request: &R,
        is_asking: bool,
    ) -> Result<R::Found, Failed> {
        match request.send(connection, is_asking).await {
            Err(failed) if R::KEYS == KeyCount::Several && failed.is_moving() => {
                Box::pin(request.in_parts(self, failed)).await
            }
            found => found,
        }
    }

    async fn connection(
        &self,
        slot: Slot,
        over: Over,
        hops: &mut Hops,
    ) -> Result<Arc<Connection>, Fault> {
        loop {
            let server = match hops.next() {
                Some(endpoint) => Some(self.topology.slot_owners.server_at(&endpoint, slot)),
                None => self.topology.slot_owners.server(slot),
            };
            let fault = match server {
                Some(server) => {
                    let connection = pin!(over(&server).ready());
                    match self.topology.doubting(connection).await {
                        Ok(connection) => return Ok(connection),
                        Err(fault) if fault.kind == LockErrorKind::Unavailable => fault,
                        Err(fault) => return Err(fault),
                    }
                }
                None => match Box::pin(self.topology.unserved(slot)).await? {
                    Some(fault) => fault,
                    None => continue,
                },
            };
            Box::pin(self.again(fault, hops)).await?;
        }
    }

    /// Prepares the next sending after a failure, or returns the fault that ends the request.
    async fn follow(
        &self,
        slot: Slot,
        connection: &Connection,
        Failed { fault, meaning }: Failed,
        keys: KeyCount,
        hops: &mut Hops,
    ) -> Result<(), Fault> {
        let opener = &self.topology.opener;
        match meaning {
            Meaning::Moved(endpoint) => {
                // Changes nothing if this node does not own the slot in the table, as the target of a migration.
                self.topology.slot_owners.move_slot(slot, connection, &endpoint);
                hops.redirect(fault, None, opener).await
            }
            Meaning::Asks(endpoint) if keys == KeyCount::One => {
                hops.redirect(fault, Some(endpoint), opener).await
            }
            Meaning::Split if keys == KeyCount::One => self.again(fault, hops).await,
            Meaning::Passes => self.again(fault, hops).await,
            // Once: at the second time another client keeps flushing the scripts.
            Meaning::Forgotten if hops.breaks() => Ok(()),
            Meaning::Asks(_) | Meaning::Split | Meaning::Stays if connection.is_retired() => {
                self.again(fault, hops).await
            }
            Meaning::Asks(_) | Meaning::Split | Meaning::Forgotten | Meaning::Stays => Err(fault),
        }
    }

    /// Prepares a repetition after a pause, during which the table is refreshed.
    ///
    /// # Errors
    /// With the fault, if no other server can have the slot, and when the command deadline has passed.
    async fn again(&self, fault: Fault, hops: &mut Hops) -> Result<(), Fault> {
        if !self.topology.slot_owners.refresh_soon() {
            return Err(fault);
        }
        hops.pause(fault, &self.topology.opener).await
    }
}

/// A repeated release that does not find its owner token proves nothing: the first request, whose answer was lost, may
/// have released it, or the lock was lost before. If an abandoned server had released it, its absence on the next one
/// shows that the release got there.
pub(crate) fn sure(
    found: Release,
    before: &Before<Release>,
    server: &str,
) -> Result<Release, Fault> {
    match (before, found) {
        (Before::Nothing, _) | (_, Release::Released) => Ok(found),
        (Before::Left(Release::Released), Release::Absent) => Ok(Release::Released),
        (Before::Unknown | Before::Left(_), Release::Absent | Release::Taken) => {
            Err(fault::unsure_release(server))
        }
    }
}

impl<T> Before<T> {
    pub(crate) fn map<R>(self, change: impl FnOnce(T) -> R) -> Before<R> {
        match self {
            Self::Nothing => Before::Nothing,
            Self::Unknown => Before::Unknown,
            Self::Left(found) => Before::Left(change(found)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Release::{Absent, Released, Taken};

    #[test]
    fn a_repeated_release_is_sure_where_it_is_known() {
        let sure = |before, found| sure(found, &before, "server").ok();
        assert_eq!(sure(Before::Nothing, Absent), Some(Absent));
        assert_eq!(sure(Before::Unknown, Released), Some(Released));
        assert_eq!(sure(Before::Unknown, Absent), None);
        assert_eq!(sure(Before::Unknown, Taken), None);
        assert_eq!(sure(Before::Left(Released), Absent), Some(Released));
        assert_eq!(sure(Before::Left(Released), Taken), None);
        assert_eq!(sure(Before::Left(Absent), Absent), None);
    }
}
