//! The server that locks are on, and how a request gets an answer there.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::connections::Connections;
use super::latest_releases::LatestReleases;
use super::reach::opener::Opener;
use super::wait::grants::Grants;
use super::wire::connection::Connection;
use crate::backend::Fault;
use crate::types::slot::Slot;

/// Where locks are.
#[derive(Clone)]
pub(super) enum Servers {
    /// One server, or the primary that Sentinels name.
    One(Arc<One>),
}

pub(super) struct One {
    pub(super) connections: Connections,
    pub(super) grants: Grants,
    /// Only where Sentinels name the server.
    pub(super) latest_releases: Option<LatestReleases>,
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
        Self::One(Arc::new(One {
            grants: Grants::new(opener.clone()),
            latest_releases: opener.changes().map(|_| LatestReleases::default()),
            connections: Connections::new(opener, background),
        }))
    }

    /// Runs the verb on this runtime's connection; once more, on a new one, when that broke, and as often as its
    /// server was left.
    ///
    /// Verbs may be repeated: the owner token makes the second request find what the first one did.
    pub(super) async fn on_connection<T>(
        &self,
        slot: Slot,
        verb: impl AsyncFn(&Arc<Connection>) -> Result<T, Fault>,
    ) -> Result<Ran<T>, Fault> {
        let (mut before, mut has_broken) = (Before::Nothing, false);
        loop {
            let connection = self.ready(slot).await?;
            before = match connection.unless_left(verb(&connection)).await {
                Some(Ok(found)) if !connection.is_left() => return Ok(Ran { found, before }),
                Some(Ok(found)) => Before::Left(found),
                None => Before::Unknown,
                Some(Err(_)) if connection.is_left() => Before::Unknown,
                Some(Err(_)) if connection.is_retired() && !has_broken => {
                    has_broken = true;
                    Before::Unknown
                }
                Some(Err(fault)) => return Err(fault),
            };
        }
    }

    async fn ready(&self, _: Slot) -> Result<Arc<Connection>, Fault> {
        match self {
            Self::One(one) => one.connections.ready().await,
        }
    }

    /// What opening a connection takes.
    pub(super) fn opener(&self) -> &Opener {
        match self {
            Self::One(one) => &one.connections.opener,
        }
    }

    pub(super) fn background(&self) -> &Handle {
        &self.opener().timers
    }
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
