//! Locks in Redis: the verbs as commands and scripts.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use self::acquire::acquire;
use self::batch::{releases, renewals};
use self::connections::Connections;
use self::reach::address::is_scheme;
use self::wire::connection::Connection;
use self::wire::script::{Enqueue, Inspect, Leave, Place};
use super::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Environment, Fault, Grant, Held, Hook,
    Listener, Release, Renewal, Renewed, Reply, Reserved, Settings,
};
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::slot::Slot;
use crate::types::token::Origin;

mod acquire;
mod batch;
mod check;
mod connections;
mod fault;
mod fence;
mod latest_releases;
mod reach;
mod wait;
mod wire;

#[cfg(test)]
pub(crate) use self::wait::times::Times;

/// A Redis or Valkey server that is reached at one address, or the primary that Sentinels name.
#[derive(Clone)]
pub(crate) struct Redis {
    connections: Arc<Connections>,
}

impl Redis {
    /// Whether URLs with this scheme are of Redis or Valkey.
    pub(crate) fn has_scheme(scheme: &str) -> bool {
        is_scheme(scheme)
    }

    /// # Errors
    /// When the URL is not one of a Redis server.
    pub(crate) fn open(settings: &Settings) -> Result<Self, LockError> {
        let connections = Arc::new(Connections::open(settings)?);
        let this = Self { connections };
        this.follow();
        Ok(this)
    }

    /// Follows the primary that Sentinels name, where they do.
    fn follow(&self) {
        let Some(mut changes) = self.connections.opener.changes() else { return };
        let connections = Arc::downgrade(&self.connections);
        drop(self.connections.background.spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(connections) = connections.upgrade() else { return };
                connections.leave();
                drop(tokio::spawn(Self { connections }.move_in()));
            }
        }));
    }

    /// Connects the background to the new primary, before renewals need that, and releases once more what was
    /// released last, because the new primary may not know that.
    async fn move_in(self) {
        let Some(latest) = &self.connections.latest_releases else { return };
        // A fault shows at the first release, and in what asks next.
        drop(self.connections.ready().await);
        // The first release that fails ends this: the leases of the others end by themselves.
        let opener = &self.connections.opener;
        let limit = opener.command_deadline.saturating_mul(2);
        let mut running = JoinSet::new();
        for attempt in latest.take() {
            if running.len() >= MAX_REPEATED_AT_ONCE
                && !matches!(running.join_next().await, Some(Ok(Some(Ok(_)))))
            {
                return;
            }
            let (opener, release) = (opener.clone(), self.release(attempt));
            running.spawn(async move { opener.within(limit, release).await });
        }
        running.join_all().await;
    }

    /// A release was answered.
    fn released(&self, attempt: Arc<Attempt>, found: Release) {
        if let (Release::Released, Some(latest)) = (found, &self.connections.latest_releases) {
            latest.add(attempt, boot_time());
        }
    }

    /// Runs the verb on this runtime's connection; once more, on a new one, when that broke, and as often as its
    /// server is not the primary any more.
    ///
    /// Verbs may be repeated: the owner token makes the second request find what the first one did.
    async fn on_connection<T>(
        &self,
        verb: impl AsyncFn(&Arc<Connection>) -> Result<T, Fault>,
    ) -> Result<Ran<T>, Fault> {
        let (mut before, mut has_broken) = (Before::Nothing, false);
        loop {
            let connection = self.connections.ready().await?;
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
}

/// How many releases are repeated at a time: a few batches, so that other calls come between.
const MAX_REPEATED_AT_ONCE: usize = 128;

/// What a verb found, and what became of the request before the one that counts.
struct Ran<T> {
    found: T,
    before: Before<T>,
}

enum Before<T> {
    /// There was no other request.
    Nothing,
    /// Its answer was lost.
    Unknown,
    /// A server answered this that is not the primary any more.
    Left(T),
}

/// A release that was repeated and does not find its own proves nothing: the first request, whose
/// answer was lost with its connection, may have released it, or the lock was lost before.
///
/// Where a server that was left had released it, its absence on the next one shows that this one knows that.
fn sure(found: Release, before: &Before<Release>, server: &str) -> Result<Release, Fault> {
    match (before, found) {
        (Before::Nothing, _) | (_, Release::Released) => Ok(found),
        (Before::Left(Release::Released), Release::Absent) => Ok(Release::Released),
        (Before::Unknown | Before::Left(_), Release::Absent | Release::Taken) => {
            Err(fault::unsure_release(server))
        }
    }
}

impl Backend for Redis {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let this = self.clone();
        let acquire = async move |connection: &Arc<Connection>| acquire(connection, &attempt).await;
        Box::pin(async move { this.on_connection(acquire).await.map(|ran| ran.found) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let this = self.clone();
        let of = Arc::clone(&attempt);
        let release =
            async move |connection: &Arc<Connection>| releases::release(connection, &of).await;
        Box::pin(async move {
            let Ran { found, before } = this.on_connection(release).await?;
            let found = sure(found, &before, this.name())?;
            this.released(attempt, found);
            Ok(found)
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let this = self.clone();
        let (of, queued) = (Arc::clone(&attempt), Arc::clone(&next));
        let release = async move |connection: &Arc<Connection>| {
            releases::release_one(connection, &of, Some(&queued)).await
        };
        Box::pin(async move {
            let sent = boot_time();
            next.mark_sent(sent);
            let Ran { found: (found, handed), before } = this.on_connection(release).await?;
            let grant = handed.map(|(fence, time)| {
                this.connections.times.learn(sent, time, boot_time());
                Grant::answered(&next, Reserved::at(fence, time), sent, next.ttl.provisional())
            });
            let before = match before {
                Before::Nothing => Before::Nothing,
                Before::Unknown => Before::Unknown,
                Before::Left((found, _)) => Before::Left(found),
            };
            let found = sure(found, &before, this.name())?;
            this.released(attempt, found);
            Ok((found, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let this = self.clone();
        let queued = Arc::clone(&attempt);
        let enqueue = async move |connection: &Arc<Connection>| {
            let sent = boot_time();
            queued.mark_sent(sent);
            let asked = connection
                .run(&Enqueue(&queued))
                .await
                .map_err(|fault| fault::of_queue(fault, &connection.names.namespace, &queued.key));
            asked.map(|answer| (sent, answer))
        };
        Box::pin(async move {
            let (sent, (place, time)) = this.on_connection(enqueue).await?.found;
            this.connections.times.learn(sent, time, boot_time());
            Ok(match place {
                Place::Granted { fence } => {
                    let fence = Reserved::at(fence, time);
                    Enqueued::Granted(Grant::answered(&attempt, fence, sent, attempt.ttl))
                }
                Place::Queued { remaining } => Enqueued::Queued { remaining },
            })
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let this = self.clone();
        let leave =
            async move |connection: &Arc<Connection>| connection.run(&Leave(&attempt)).await;
        Box::pin(async move { this.on_connection(leave).await.map(|ran| ran.found) })
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Listener>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move { this.connections.grants.listen(origin, hook).await })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let this = self.clone();
        let renew =
            async move |connection: &Arc<Connection>| renewals::renew(connection, &renewals).await;
        Box::pin(async move { this.on_connection(renew).await.map(|ran| ran.found) })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let this = self.clone();
        let inspect =
            async move |connection: &Arc<Connection>| connection.run(&Inspect(&key)).await;
        Box::pin(async move { this.on_connection(inspect).await.map(|ran| ran.found) })
    }
}

impl Environment for Redis {
    fn name(&self) -> &str {
        &self.connections.opener.server
    }

    fn store(&self) -> &str {
        &self.connections.opener.store
    }

    fn now(&self) -> Moment {
        boot_time()
    }

    /// On the background runtime: the caller's may be paused, blocked or without timers.
    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(&self.connections.background, duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.connections.background.spawn(task));
    }

    /// The background runtime, which runs while the caller's is blocked, and after it ended.
    fn home(&self, _: bool) -> Handle {
        self.connections.background.clone()
    }

    fn connect(&self) -> Reply<()> {
        let connections = Arc::clone(&self.connections);
        Box::pin(async move {
            connections.ready().await?;
            // Behind Sentinels the background connects at once, too: see `move_in`.
            if connections.latest_releases.is_some() {
                let background = connections.background.clone();
                let connecting =
                    background.spawn(async move { connections.ready().await.map(drop) });
                // Renewals say what is wrong there.
                drop(connecting.await);
            }
            Ok(())
        })
    }

    fn when_connected(&self, hook: Hook) {
        self.connections.when_connected(hook);
    }

    fn left_at(&self, _: Slot) -> Moment {
        self.connections.left_at()
    }

    fn unanswered(&self, _: Slot, waited: Duration) -> Fault {
        self.connections.unanswered(waited);
        Fault::no_answer(self.name(), waited)
    }

    /// On the background runtime, so that it cleans up also when its caller is dropped.
    fn check(&self, prefix: &str) -> Checkup {
        let this = self.clone();
        let check = check::check(self.connections.opener.clone(), prefix.to_owned());
        let checked = self.connections.background.spawn(check);
        Box::pin(async move { checked.await.unwrap_or_else(|_| check::unchecked(this.name())) })
    }
}

#[cfg(test)]
mod tests {
    use super::Release::{Absent, Released, Taken};
    use super::{Before, sure};

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
