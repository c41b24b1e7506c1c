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

/// How many keys the server scans for one page: about 200 µs.
const COUNT: u64 = 250;

/// The number of keys that are read at once, which takes the server about 100 µs.
const READ: usize = 64;

/// How often the scan of a server starts again because its connection broke: a cursor is good for one run of one
/// server.
const RESTARTS: u32 = 3;

/// How often a server is tried that has not replied yet: each try may take as long as opening a connection.
const TRIES: u32 = 2;

/// How often nodes are scanned again whose slots have moved meanwhile.
const ROUNDS: u32 = 3;

struct Sweep {
    router: Router,
    selection: Selection,
    /// The servers to scan; the last one is under way.
    servers: Vec<Arc<Server>>,
    at: Option<SweepPosition>,
    has_answered: bool,
    restarts: u32,
    rounds: u32,
    /// A slot that has moved since then may have been missed.
    since: Moment,
}

struct SweepPosition {
    connection: Arc<Connection>,
    cursor: u64,
}

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

    /// The locks on the next page of this server; sets no position after the last page.
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

    /// An error that the server answered, which may mean that it is left.
    fn fault(&self, connection: &Connection, error: &RedisError) -> Fault {
        if fault::is_missing_right(error) {
            return call::fault(&self.router.topology.opener, error);
        }
        connection.fault(error)
    }

    /// Continues with the next server, or with those to which slots have moved.
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

    /// Connects again after a break; otherwise lists the other servers without this one. A node that has lost its slots
    /// is no fault.
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

    /// An empty page, followed by the remaining ones.
    fn rest(self) -> Page {
        let rest: Option<Rest> = if self.servers.is_empty() {
            None
        } else {
            Some(Box::new(|| -> Reply<Page> { Box::pin(self.page()) }))
        };
        Page { seen: Vec::new(), scanned: 0, fault: None, rest }
    }
}
