use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use self::connect::hosts::is_scheme;
use self::route::Router;
use self::topology::Topology;
use crate::core::backend::{Attempt, Backend as _, Environment, Events, Fault, Reply};
use crate::core::background::background;
use crate::core::process::clock::{Moment, boot_time, timer_on};
use crate::core::settings::Settings;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::owner::{Origin, ReleasedBy};
use crate::core::types::slot::Slot;

mod batch;
pub(crate) mod connect;
pub(crate) mod fault;
mod fences;
pub(crate) mod pubsub;
pub(crate) mod route;
pub(crate) mod topology;
mod verbs;
pub(crate) mod wire;

#[cfg(test)]
pub(crate) use self::connect::address::Address;
#[cfg(test)]
pub(crate) use self::route::{Before, sure};
#[cfg(test)]
pub(crate) use self::topology::latest_releases::LatestReleases;

/// Redis or Valkey: one server, the primary that Sentinels name, or a cluster.
#[derive(Clone)]
pub(crate) struct Redis {
    pub(crate) router: Router,
}

impl Redis {
    pub(crate) fn has_scheme(scheme: &str) -> bool {
        is_scheme(scheme)
    }

    /// # Errors
    /// When the URL is invalid.
    pub(crate) fn open(settings: &Settings) -> Result<Self, LockError> {
        let background = background().map_err(|error| {
            LockError::new(LockErrorKind::Unavailable, format!("no background thread: {error}"))
        })?;
        let this = Self { router: Router { topology: Topology::open(settings, background)? } };
        this.follow();
        Ok(this)
    }

    /// Follows the primary that Sentinels name, if they do.
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

    pub(crate) fn topology(&self) -> &Arc<Topology> {
        &self.router.topology
    }

    /// Connects to the new primary before renewals need that, and repeats the latest releases, which it may not know.
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

    /// Repeats the attempt's release and its withdrawal from the queue.
    fn end_again(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let (released, left) =
            (self.release(Arc::clone(&attempt)), self.leave(Arc::clone(&attempt)));
        Box::pin(async move {
            released.await?;
            if attempt.was_queued() { left.await } else { Ok(()) }
        })
    }
}

/// How many releases are repeated at once: a few batches, so that other calls come between.
const MAX_REPEATED_AT_ONCE: usize = 128;

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

    /// The background runtime, which runs while the caller's is blocked and after it has ended.
    fn renewal_runtime(&self, _: bool) -> Handle {
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

    fn report_to(&self, _: Origin, events: Weak<dyn Events>) {
        self.topology().opener.reports.go_to(events);
    }

    fn server_index(&self, slot: Slot) -> usize {
        self.topology().slot_owners.number(slot).unwrap_or_default()
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
}

#[cfg(test)]
mod tests;
