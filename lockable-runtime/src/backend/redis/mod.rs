//! Locks in Redis: the verbs as commands and scripts.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use self::acquire::acquire;
use self::batch::releases;
use self::reach::hosts::is_scheme;
use self::reach::opener::Opener;
use self::servers::{Before, Ran, Servers};
use self::wire::connection::Connection;
use self::wire::script::{Enqueue, Inspect, Leave, Place};
use super::{
    Acquisition, Attempt, Backend, ChangeHook, Checkup, Enqueued, Environment, Fault, Grant, Held,
    Hook, Listener, Release, Renewal, Renewed, Reply, Reserved, Settings,
};
use crate::background::background;
use crate::check::Role;
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::slot::Slot;
use crate::types::token::Origin;

mod acquire;
mod admin;
mod batch;
mod check;
mod cluster;
mod connections;
mod fault;
mod fence;
mod latest_releases;
mod reach;
mod revoking;
mod servers;
mod times;
mod tracking;
mod wait;
mod wire;

#[cfg(test)]
pub(crate) use self::times::Times;

/// Redis or Valkey: a server at one address, the primary that Sentinels name, or a cluster.
#[derive(Clone)]
pub(crate) struct Redis {
    servers: Servers,
}

impl Redis {
    /// Whether URLs with this scheme are of Redis or Valkey.
    pub(crate) fn has_scheme(scheme: &str) -> bool {
        is_scheme(scheme)
    }

    /// # Errors
    /// When the URL is not one of a Redis server.
    pub(crate) fn open(settings: &Settings) -> Result<Self, LockError> {
        let background = background().map_err(|error| {
            LockError::new(LockErrorKind::Unavailable, format!("no background thread: {error}"))
        })?;
        let opener = Opener::new(settings, background.clone())?;
        let this = Self { servers: Servers::new(opener, background) };
        this.follow();
        Ok(this)
    }

    /// Follows the primary that Sentinels name, where they do.
    fn follow(&self) {
        let Servers::One(one) = &self.servers else { return };
        let Some(mut changes) = self.servers.opener().changes() else { return };
        let one = Arc::downgrade(one);
        drop(self.servers.background().spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(one) = one.upgrade() else { return };
                one.connections.leave();
                one.readers.drop_retired();
                drop(tokio::spawn(Self { servers: Servers::One(one) }.move_in()));
            }
        }));
    }

    /// Connects the background to the new primary, before renewals need that, and releases once more what was
    /// released last, because the new primary may not know that.
    async fn move_in(self) {
        let Some(latest) = self.servers.latest_releases() else { return };
        // A fault shows at the first release, and in what asks next.
        drop(self.servers.connect().await);
        // The first release that fails ends this: the leases of the others end by themselves.
        let opener = self.servers.opener();
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
        if let (Release::Released, Some(latest)) = (found, self.servers.latest_releases()) {
            latest.add(attempt, boot_time());
        }
    }
}

/// How many releases are repeated at a time: a few batches, so that other calls come between.
const MAX_REPEATED_AT_ONCE: usize = 128;

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
        let (this, slot) = (self.clone(), attempt.slot);
        let acquire = async move |servers: &Servers, connection: &Arc<Connection>| match acquire(
            connection, &attempt,
        )
        .await
        {
            Err(fault) => Box::pin(servers.in_parts(fault)?.acquire(&attempt)).await,
            found => found,
        };
        Box::pin(async move { this.servers.run(slot, acquire).await.map(|ran| ran.found) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let (this, slot, of) = (self.clone(), attempt.slot, Arc::clone(&attempt));
        let release =
            async move |servers: &Servers, connection: &Arc<Connection>| match releases::release(
                connection, &of,
            )
            .await
            {
                Err(fault) => Box::pin(servers.in_parts(fault)?.release(&of)).await,
                found => found,
            };
        Box::pin(async move {
            let Ran { found, before } = this.servers.run(slot, release).await?;
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
        Box::pin(async move {
            // Of the first request, which may be the one that has handed the lock off.
            let sent = boot_time();
            next.mark_sent(sent);
            let of = Arc::clone(&attempt);
            let release = async move |servers: &Servers, connection: &Arc<Connection>| {
                servers.start_listening_for(&next);
                let (found, handed) =
                    match releases::release_one(connection, &of, Some(&next)).await {
                        // The next attempt waits in no queue, and asks within a second.
                        Err(fault) => {
                            let parts = servers.in_parts(fault)?;
                            (Box::pin(parts.release(&of)).await?, None)
                        }
                        Ok(released) => released,
                    };
                let grant = handed.map(|(fence, time)| {
                    connection.learn(sent, time);
                    Grant::answered(&next, Reserved::at(fence, time), sent, next.ttl.provisional())
                });
                Ok((found, grant))
            };
            let ran = this.servers.run(attempt.slot, release).await?;
            let Ran { found: (found, grant), before } = ran;
            let found = sure(found, &before.map(|(found, _)| found), this.name())?;
            this.released(attempt, found);
            Ok((found, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let (this, slot) = (self.clone(), attempt.slot);
        let enqueue = async move |servers: &Servers, connection: &Arc<Connection>| {
            servers.listen_for(&attempt).await;
            if attempt.is_withdrawn() {
                return Ok(Enqueued::Queued { remaining: None });
            }
            let sent = boot_time();
            attempt.mark_sent(sent);
            let (place, time) = match connection.run(&Enqueue(&attempt)).await {
                Ok(asked) => asked,
                Err(fault) => {
                    let namespace = &connection.names.namespace;
                    let fault = fault::of_queue(fault, namespace, &attempt.key);
                    return Box::pin(servers.in_parts(fault)?.enqueue(&attempt)).await;
                }
            };
            connection.learn(sent, time);
            Ok(match place {
                Place::Granted { fence } => {
                    let fence = Reserved::at(fence, time);
                    Enqueued::Granted(Grant::answered(&attempt, fence, sent, attempt.ttl))
                }
                Place::Queued { remaining } => Enqueued::Queued { remaining },
            })
        };
        Box::pin(async move { this.servers.run(slot, enqueue).await.map(|ran| ran.found) })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let (this, slot) = (self.clone(), attempt.slot);
        let leave = async move |servers: &Servers, connection: &Arc<Connection>| match connection
            .run(&Leave(&attempt))
            .await
        {
            Err(fault) => Box::pin(servers.in_parts(fault)?.leave(&attempt)).await,
            left => left,
        };
        Box::pin(async move { this.servers.run(slot, leave).await.map(|ran| ran.found) })
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Listener>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move { this.servers.listen(origin, hook).await })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let this = self.clone();
        Box::pin(async move { this.servers.renew(renewals).await })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let (this, slot) = (self.clone(), Slot::of(&key));
        let inspect = async move |servers: &Servers, connection: &Arc<Connection>| match connection
            .run(&Inspect(&key))
            .await
        {
            Err(fault) => Box::pin(servers.in_parts(fault)?.inspect(&key)).await,
            held => held,
        };
        Box::pin(async move { this.servers.run(slot, inspect).await.map(|ran| ran.found) })
    }
}

impl Environment for Redis {
    fn name(&self) -> &str {
        &self.servers.opener().server
    }

    fn store(&self) -> &str {
        &self.servers.opener().store
    }

    fn now(&self) -> Moment {
        boot_time()
    }

    /// On the background runtime: the caller's may be paused, blocked or without timers.
    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(self.servers.background(), duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.servers.background().spawn(task));
    }

    /// The background runtime, which runs while the caller's is blocked, and after it ended.
    fn home(&self, _: bool) -> Handle {
        self.servers.background().clone()
    }

    fn connect(&self) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move {
            this.servers.connect().await?;
            // Behind Sentinels the background connects at once, too: see `move_in`.
            if this.servers.latest_releases().is_some() {
                let background = this.servers.background().clone();
                // Renewals say what is wrong there.
                drop(background.spawn(async move { this.servers.connect().await }).await);
            }
            Ok(())
        })
    }

    fn when_connected(&self, hook: Hook) {
        self.servers.when_connected(hook);
    }

    fn when_changed(&self, hook: ChangeHook) {
        self.servers.when_changed(hook);
    }

    fn left_at(&self, slot: Slot) -> Moment {
        self.servers.left_at(slot)
    }

    fn place(&self, slot: Slot) -> usize {
        self.servers.place(slot)
    }

    fn watch_holders(&self) {
        self.revocations().start(self.servers.opener());
    }

    fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.servers.unanswered(slot, waited)
    }

    /// On the background runtime, so that it cleans up also when its caller is dropped.
    fn check(&self, prefix: &str, role: Role) -> Checkup {
        let this = self.clone();
        let check = check::check(self.servers.opener().clone(), prefix.to_owned(), role);
        let checked = self.servers.background().spawn(check);
        Box::pin(async move { checked.await.unwrap_or_else(|_| check::unchecked(this.name())) })
    }
}

#[cfg(test)]
mod tests {
    use super::Release::{Absent, Released, Taken};
    use super::servers::Before;
    use super::sure;

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
