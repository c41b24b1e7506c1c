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
use self::reach::hosts::is_scheme;
use self::reach::opener::Opener;
use self::servers::{Before, Ran, Servers};
use self::wire::connection::Connection;
use self::wire::script::{Enqueue, Inspect, Leave, Place};
use super::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Environment, Fault, Grant, Held, Hook,
    Listener, Release, Renewal, Renewed, Reply, Reserved, Settings,
};
use crate::background::background;
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::error::{LockError, LockErrorKind};
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
mod servers;
mod times;
mod wait;
mod wire;

#[cfg(test)]
pub(crate) use self::times::Times;

/// A Redis or Valkey server that is reached at one address, or the primary that Sentinels name.
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
        let Servers::One(one) = &self.servers;
        let Some(mut changes) = self.servers.opener().changes() else { return };
        let one = Arc::downgrade(one);
        drop(self.servers.background().spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(one) = one.upgrade() else { return };
                one.connections.leave();
                drop(tokio::spawn(Self { servers: Servers::One(one) }.move_in()));
            }
        }));
    }

    /// Connects the background to the new primary, before renewals need that, and releases once more what was
    /// released last, because the new primary may not know that.
    async fn move_in(self) {
        let Servers::One(one) = &self.servers;
        let Some(latest) = &one.latest_releases else { return };
        // A fault shows at the first release, and in what asks next.
        drop(one.connections.ready().await);
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
        let Servers::One(one) = &self.servers;
        if let (Release::Released, Some(latest)) = (found, &one.latest_releases) {
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
        let acquire = async move |connection: &Arc<Connection>| acquire(connection, &attempt).await;
        Box::pin(
            async move { this.servers.on_connection(slot, acquire).await.map(|ran| ran.found) },
        )
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let (this, slot, of) = (self.clone(), attempt.slot, Arc::clone(&attempt));
        let release =
            async move |connection: &Arc<Connection>| releases::release(connection, &of).await;
        Box::pin(async move {
            let Ran { found, before } = this.servers.on_connection(slot, release).await?;
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
            let release = async move |connection: &Arc<Connection>| {
                let released = releases::release_one(connection, &of, Some(&next));
                let (found, handed) = released.await?;
                let grant = handed.map(|(fence, time)| {
                    connection.learn(sent, time);
                    Grant::answered(&next, Reserved::at(fence, time), sent, next.ttl.provisional())
                });
                Ok((found, grant))
            };
            let ran = this.servers.on_connection(attempt.slot, release).await?;
            let Ran { found: (found, grant), before } = ran;
            let found = sure(found, &before.map(|(found, _)| found), this.name())?;
            this.released(attempt, found);
            Ok((found, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let (this, slot) = (self.clone(), attempt.slot);
        let enqueue = async move |connection: &Arc<Connection>| {
            let sent = boot_time();
            attempt.mark_sent(sent);
            let asked = connection.run(&Enqueue(&attempt)).await;
            let (place, time) = asked.map_err(|fault| {
                fault::of_queue(fault, &connection.names.namespace, &attempt.key)
            })?;
            connection.learn(sent, time);
            Ok(match place {
                Place::Granted { fence } => {
                    let fence = Reserved::at(fence, time);
                    Enqueued::Granted(Grant::answered(&attempt, fence, sent, attempt.ttl))
                }
                Place::Queued { remaining } => Enqueued::Queued { remaining },
            })
        };
        Box::pin(
            async move { this.servers.on_connection(slot, enqueue).await.map(|ran| ran.found) },
        )
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let (this, slot) = (self.clone(), attempt.slot);
        let leave =
            async move |connection: &Arc<Connection>| connection.run(&Leave(&attempt)).await;
        Box::pin(async move { this.servers.on_connection(slot, leave).await.map(|ran| ran.found) })
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Listener>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move {
            let Servers::One(one) = &this.servers;
            one.grants.listen(origin, hook).await
        })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let this = self.clone();
        Box::pin(async move {
            let Some(first) = renewals.first() else { return Ok(Vec::new()) };
            let slot = first.attempt.slot;
            let renew = async move |connection: &Arc<Connection>| {
                renewals::renew(connection, &renewals).await
            };
            this.servers.on_connection(slot, renew).await.map(|ran| ran.found)
        })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let (this, slot) = (self.clone(), Slot::of(&key));
        let inspect =
            async move |connection: &Arc<Connection>| connection.run(&Inspect(&key)).await;
        Box::pin(
            async move { this.servers.on_connection(slot, inspect).await.map(|ran| ran.found) },
        )
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
            let Servers::One(one) = &this.servers;
            one.connections.ready().await?;
            // Behind Sentinels the background connects at once, too: see `move_in`.
            if one.latest_releases.is_some() {
                let one = Arc::clone(one);
                let connecting = this.servers.background();
                let connecting =
                    connecting.spawn(async move { one.connections.ready().await.map(drop) });
                // Renewals say what is wrong there.
                drop(connecting.await);
            }
            Ok(())
        })
    }

    fn when_connected(&self, hook: Hook) {
        let Servers::One(one) = &self.servers;
        one.connections.when_connected(hook);
    }

    fn left_at(&self, _: Slot) -> Moment {
        let Servers::One(one) = &self.servers;
        one.connections.left_at()
    }

    fn unanswered(&self, _: Slot, waited: Duration) -> Fault {
        let Servers::One(one) = &self.servers;
        one.connections.unanswered(waited);
        Fault::no_answer(self.name(), waited)
    }

    /// On the background runtime, so that it cleans up also when its caller is dropped.
    fn check(&self, prefix: &str) -> Checkup {
        let this = self.clone();
        let check = check::check(self.servers.opener().clone(), prefix.to_owned());
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
