//! A listing: one cursor for each primary, and behind each page what is under its keys.

use std::sync::Arc;

use ::redis::{Cmd, FromRedisValue, RedisError};

use super::call::{self, call, first};

use super::look::{self, Extent};
use super::queue;
use crate::core::backend::{Fault, Reply};
use crate::core::process::clock::{Moment, boot_time};
use crate::core::types::error::LockErrorKind;
use crate::core::types::key::LockKey;
use crate::operators::contract::{Page, Rest, Seen};
use crate::operators::selection::Selection;
use crate::redis::fault;
use crate::redis::route::Router;
use crate::redis::topology::server::Server;
use crate::redis::wire::connection::Connection;

/// How many keys the server goes through for one page: about 200 µs.
const COUNT: u64 = 250;

/// The number of keys that are read at once, which takes the server about 100 µs.
const READ: usize = 64;

/// How often a server is gone through from the start, because its connection broke: a cursor is good for one run
/// of one server.
const RESTARTS: u32 = 3;

/// Limits how often a server is tried that has not answered yet: each try takes as long as a connection may.
const TRIES: u32 = 2;

/// How often the nodes of slots that have moved meanwhile are gone through again.
const ROUNDS: u32 = 3;

/// A listing under way.
struct Sweep {
    router: Router,
    selection: Selection,
    /// What is to be gone through; the last one is under way.
    servers: Vec<Arc<Server>>,
    at: Option<SweepPosition>,
    /// Whether the server under way has answered.
    has_answered: bool,
    restarts: u32,
    rounds: u32,
    /// What has moved since then may have been missed.
    since: Moment,
}

/// How far the server under way is gone through.
struct SweepPosition {
    connection: Arc<Connection>,
    cursor: u64,
}

/// The first page.
pub(super) async fn begin(router: Router, selection: Selection) -> Result<Page, Fault> {
    let since = boot_time();
    let servers = router.topology.servers().await?;
    let sweep = Sweep {
        router,
        selection,
        servers,
        at: None,
        has_answered: false,
        restarts: 0,
        rounds: 0,
        since,
    };
    sweep.page().await
}

impl Sweep {
    async fn page(mut self) -> Result<Page, Fault> {
        let Some(server) = self.servers.last().cloned() else { return Ok(self.rest()) };
        let begun = boot_time();
        match self.scan(&server).await {
            Ok(seen) => {
                let ended = if self.at.is_none() { self.next_server().await } else { Ok(()) };
                Ok(Page { seen, scanned: COUNT, fault: ended.err(), ..self.rest() })
            }
            Err(fault) => {
                let hangs = boot_time().since(begun) > self.router.topology.opener.command_deadline;
                self.failed(fault, &server, hangs).await
            }
        }
    }

    /// What is on the next page of this server; no place is left where that was the last one.
    async fn scan(&mut self, server: &Server) -> Result<Vec<Seen>, Fault> {
        let SweepPosition { connection, cursor } = match self.at.take() {
            Some(at) if at.connection.is_retired() => {
                return Err(Fault::unavailable(format!("{}: the connection broke", server.name())));
            }
            Some(at) => at,
            None => SweepPosition { connection: server.readers().ready().await?, cursor: 0 },
        };
        let (cursor, keys) = self.keys(&connection, cursor).await?;
        self.has_answered = true;
        let mut seen = Vec::new();
        for keys in keys.chunks(READ) {
            seen.extend(self.read(&connection, keys).await?);
        }
        self.at = (cursor != 0).then_some(SweepPosition { connection, cursor });
        Ok(seen)
    }

    /// The keys of locks on the next page, and where the one behind it begins.
    async fn keys(
        &self,
        connection: &Connection,
        cursor: u64,
    ) -> Result<(u64, Vec<LockKey>), Fault> {
        let mut scan = Cmd::new();
        scan.arg("SCAN").arg(cursor).arg("MATCH").arg(self.selection.pattern());
        scan.arg("COUNT").arg(COUNT);
        let reply = first(call(connection, [scan]).await?);
        let page = reply.extract_error().map_err(|error| self.fault(connection, &error))?;
        let page = <(u64, Vec<Vec<u8>>)>::from_redis_value(page);
        let (cursor, keys) = page.map_err(|error| self.fault(connection, &error.into()))?;
        let keys = keys.into_iter().filter_map(|key| self.lock_key(key)).collect();
        Ok((cursor, keys))
    }

    /// `None` for a key that no lock can have.
    fn lock_key(&self, key: Vec<u8>) -> Option<LockKey> {
        let key = String::from_utf8(key).ok().filter(|key| self.selection.may_be_lock(key))?;
        LockKey::new(key).ok()
    }

    /// What is under these keys, which the server has just named.
    async fn read(&self, connection: &Connection, keys: &[LockKey]) -> Result<Vec<Seen>, Fault> {
        let namespace = &connection.names.namespace;
        let commands =
            keys.iter().flat_map(|key| look::commands(namespace, key, Extent::Beginning));
        let mut replies = call(connection, commands).await?.into_iter();
        let mut seen = Vec::new();
        for key in keys {
            let of_key: Vec<_> = replies.by_ref().take(3).collect();
            let found = if look::redirect(&of_key).is_some() {
                // Its slot has moved, or moves.
                look::look(&self.router, key.clone()).await?
            } else {
                let found = look::seen(key.clone(), &mut of_key.into_iter());
                let found = found.map_err(|error| self.fault(connection, &error))?;
                let is_between = look::is_between(found.as_ref());
                if is_between { look::look(&self.router, key.clone()).await? } else { found }
            };
            seen.extend(found);
        }
        queue::count_waiting(connection, &self.router.topology.opener, &mut seen).await?;
        Ok(seen)
    }

    /// An error that the server answered, after which it may have to be left.
    fn fault(&self, connection: &Connection, error: &RedisError) -> Fault {
        if fault::is_missing_right(error) {
            return call::fault(&self.router.topology.opener, error);
        }
        connection.fault(error)
    }

    /// The server is gone through, or cannot be.
    async fn next_server(&mut self) -> Result<(), Fault> {
        self.servers.pop();
        (self.at, self.has_answered, self.restarts) = (None, false, 0);
        if self.servers.is_empty() && self.rounds < ROUNDS {
            self.rounds += 1;
            let now = boot_time();
            self.servers = self.router.topology.moved_since(self.since).await?;
            self.since = now;
        }
        Ok(())
    }

    /// A broken connection is made again, and a node without slots is left. Else the others are listed without this
    /// one.
    async fn failed(mut self, fault: Fault, server: &Server, hangs: bool) -> Result<Page, Fault> {
        self.at = None;
        let may_pass = fault.kind == LockErrorKind::Unavailable && !hangs;
        let most = if self.has_answered { RESTARTS } else { TRIES - 1 };
        if may_pass && self.restarts < most {
            self.restarts += 1;
            return Ok(self.rest());
        }
        let ended = self.next_server().await;
        let is_left = self.router.topology.has_no_slots(server).await;
        let fault = if is_left { ended.err() } else { Some(fault) };
        Ok(Page { fault, ..self.rest() })
    }

    /// An empty page, with those behind it.
    fn rest(self) -> Page {
        let rest: Option<Rest> = if self.servers.is_empty() {
            None
        } else {
            Some(Box::new(|| -> Reply<Page> { Box::pin(self.page()) }))
        };
        Page { seen: Vec::new(), scanned: 0, fault: None, rest }
    }
}
