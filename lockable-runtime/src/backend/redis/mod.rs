//! Locks in Redis: the verbs as commands and scripts.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use self::connect::hosts::is_scheme;
use self::route::{Ran, Router};
use self::topology::Topology;
use self::verbs::{Acquire, AnyTaken, Enqueue, Leave, ReleaseTo, Transfer};
use super::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Environment, Epoch, Events, Fault, Grant,
    Release, Renewal, Renewed, Reply, Settings,
};
use crate::background::background;
use crate::check::Role;
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::key::LockKey;
use crate::types::owner::Held;
use crate::types::slot::Slot;
use crate::types::token::{Origin, ReleasedBy};

mod admin;
mod batch;
mod check;
mod connect;
mod fault;
mod fences;
mod pubsub;
mod route;
mod topology;
mod verbs;
mod wire;

pub(crate) use self::route::sure;

#[cfg(test)]
pub(crate) use self::connect::address::Address;
#[cfg(test)]
pub(crate) use self::route::Before;
#[cfg(test)]
pub(crate) use self::topology::latest_releases::LatestReleases;

/// Redis or Valkey: a server at one address, the primary that Sentinels name, or a cluster.
#[derive(Clone)]
pub(crate) struct Redis {
    router: Router,
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
        let this = Self { router: Router { topology: Topology::open(settings, background)? } };
        this.follow();
        Ok(this)
    }

    /// Follows the primary that Sentinels name, where they do.
    fn follow(&self) {
        let Some(mut changes) = self.topology().elections() else { return };
        let topology = Arc::downgrade(self.topology());
        drop(self.topology().opener.timers.spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(topology) = topology.upgrade() else { return };
                topology.was_elected();
                drop(tokio::spawn(Self { router: Router { topology } }.move_in()));
            }
        }));
    }

    fn topology(&self) -> &Arc<Topology> {
        &self.router.topology
    }

    /// Connects the background to the new primary, before renewals need that, and ends once more what has ended last,
    /// because the new primary may not know that.
    async fn move_in(self) {
        let Some(latest) = &self.topology().latest_releases else { return };
        // A fault shows at the first release, and in the next request.
        drop(self.topology().connect().await);
        // The first release that fails ends this: the leases of the others end by themselves.
        let opener = &self.topology().opener;
        let limit = opener.command_deadline.saturating_mul(2);
        let mut running = JoinSet::new();
        for attempt in latest.take() {
            if running.len() >= MAX_REPEATED_AT_ONCE
                && !matches!(running.join_next().await, Some(Ok(Some(Ok(())))))
            {
                return;
            }
            let opener = opener.clone();
            let again = self.end_again(attempt);
            running.spawn(async move { opener.within(limit, again).await });
        }
        running.join_all().await;
    }

    /// Releases the attempt once more, and takes it out of the queue.
    fn end_again(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let (released, left) =
            (self.release(Arc::clone(&attempt)), self.leave(Arc::clone(&attempt)));
        Box::pin(async move {
            released.await?;
            if attempt.was_queued() { left.await } else { Ok(()) }
        })
    }

    /// The grant, once it counts, for as long as the epoch lasts in which it was made.
    async fn confirmed(
        &self,
        attempt: Arc<Attempt>,
        grant: Grant,
        epoch: Option<Arc<Epoch>>,
    ) -> Result<Grant, Fault> {
        if self.router.confirms() {
            let permit = grant.permit().cloned().map(|permit| attempt.with_permit(permit));
            Box::pin(self.router.confirm(permit.unwrap_or(attempt))).await?;
        }
        Ok(grant.of_epoch(epoch))
    }

    /// A release was answered, or a withdrawal.
    fn ended(&self, attempt: Arc<Attempt>, found: Release) {
        if let (Release::Released, Some(latest)) = (found, &self.topology().latest_releases) {
            latest.add(attempt, boot_time());
        }
    }
}

/// How many releases are repeated at a time: a few batches, so that other calls come between.
const MAX_REPEATED_AT_ONCE: usize = 128;

impl Backend for Redis {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let this = self.clone();
        Box::pin(async move {
            let Ran { found, epoch, .. } =
                this.router.run(attempt.slot, &Acquire(&attempt)).await?;
            match found {
                Acquisition::Granted(grant) => {
                    this.confirmed(attempt, grant, epoch).await.map(Acquisition::Granted)
                }
                found => Ok(found),
            }
        })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let this = self.clone();
        Box::pin(async move {
            let ran = this.router.run(attempt.slot, &verbs::Release(&attempt)).await?;
            let found = sure(ran.found, &ran.before, this.name())?;
            this.ended(attempt, found);
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
            let release = ReleaseTo { router: &this.router, attempt: &attempt, next: &next };
            let Ran { found, before, epoch } = this.router.run(attempt.slot, &release).await?;
            let (found, grant) = found;
            let found = sure(found, &before.map(|(found, _)| found), this.name())?;
            this.ended(attempt, found);
            let grant = match grant {
                // One that does not count is as if it were not known: its line asks again.
                Some(grant) => this.confirmed(next, grant, epoch).await.ok(),
                None => None,
            };
            Ok((found, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let this = self.clone();
        Box::pin(async move {
            let enqueue = Enqueue { router: &this.router, attempt: &attempt };
            let Ran { found, epoch, .. } = this.router.run(attempt.slot, &enqueue).await?;
            match found {
                Enqueued::Granted(grant) => {
                    this.confirmed(attempt, grant, epoch).await.map(Enqueued::Granted)
                }
                waiting => Ok(waiting),
            }
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move {
            this.router.run(attempt.slot, &Leave(&attempt)).await?;
            this.ended(attempt, Release::Released);
            Ok(())
        })
    }

    fn listen(&self, origin: Origin, events: Weak<dyn Events>) -> Reply<()> {
        self.report_to(events);
        let router = self.router.clone();
        Box::pin(async move { router.topology.listen(origin).await })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let router = self.router.clone();
        Box::pin(async move {
            let outcomes = router.renew(&renewals).await;
            if router.confirms() {
                return Ok(router.confirm_each(renewals, outcomes).await);
            }
            Ok(outcomes)
        })
    }

    fn transfer(&self, from: Arc<Attempt>, to: Arc<Attempt>) -> Reply<Renewed> {
        let router = self.router.clone();
        Box::pin(async move {
            let found = router.run(from.slot, &Transfer { from: &from, to: &to }).await?.found;
            if found == Renewed::Held && router.confirms() {
                Box::pin(router.confirm(to)).await?;
            }
            Ok(found)
        })
    }

    fn count_fence(&self, attempt: Arc<Attempt>) -> Reply<u64> {
        let router = self.router.clone();
        Box::pin(async move { router.count(&attempt).await })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let router = self.router.clone();
        Box::pin(async move { router.inspect(&key).await })
    }

    fn is_any_taken(&self, keys: Vec<LockKey>) -> Reply<bool> {
        let router = self.router.clone();
        Box::pin(async move {
            let Some(slot) = keys.first().map(Slot::of) else { return Ok(false) };
            Ok(router.run(slot, &AnyTaken(&keys)).await?.found)
        })
    }
}

impl Environment for Redis {
    fn name(&self) -> &str {
        &self.topology().opener.server
    }

    fn store(&self) -> &str {
        &self.topology().opener.store
    }

    fn now(&self) -> Moment {
        boot_time()
    }

    /// On the background runtime: the caller's may be paused, blocked or without timers.
    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(&self.topology().opener.timers, duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.topology().opener.timers.spawn(task));
    }

    /// The background runtime, which runs while the caller's is blocked, and after it ended.
    fn home(&self, _: bool) -> Handle {
        self.topology().opener.timers.clone()
    }

    fn connect(&self) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move {
            this.topology().connect().await?;
            // Behind Sentinels the background connects at once, too: see `move_in`.
            if this.topology().latest_releases.is_some() {
                let background = this.topology().opener.timers.clone();
                // Renewals say what is wrong there.
                drop(background.spawn(async move { this.topology().connect().await }).await);
            }
            Ok(())
        })
    }

    fn report_to(&self, events: Weak<dyn Events>) {
        self.topology().opener.reports.go_to(events);
    }

    fn place(&self, slot: Slot) -> usize {
        self.topology().number(slot).unwrap_or_default()
    }

    fn released_by(&self) -> ReleasedBy {
        let has_command = self.topology().opener.deletes.load(Ordering::Relaxed);
        if has_command { ReleasedBy::Command } else { ReleasedBy::Script }
    }

    fn watch_holders(&self) {
        self.topology().revocations.start(&self.topology().opener);
    }

    fn unanswered(&self, slot: Slot, waited: Duration) -> Fault {
        self.topology().unanswered(slot, waited)
    }

    /// On the background runtime, so that it cleans up also when its caller is dropped.
    fn check(&self, prefix: &str, role: Role) -> Checkup {
        let this = self.clone();
        let check = check::check(Arc::clone(self.topology()), prefix.to_owned(), role);
        let checked = self.topology().opener.timers.spawn(check);
        Box::pin(async move { checked.await.unwrap_or_else(|_| check::unchecked(this.name())) })
    }
}

#[cfg(test)]
mod tests;
