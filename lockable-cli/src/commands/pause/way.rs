//! What is in the way of a pause that begins now.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::admin::{Admin, HeldLock};
use lockable_runtime::{HolderKind, RequestId};

use super::{PAUSES, is_paused};
use crate::arguments::Connection;
use crate::commands::liveness::{self, LivenessCheck};
use crate::commands::no_lock;
use crate::commands::release::stopped;
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::lock::holder;

/// The locks that are to be paused, and who pauses them.
pub(super) struct Way<'a> {
    pub(super) admin: &'a Admin,
    pub(super) connection: &'a Connection,
    pub(super) names: &'a [String],
    pub(super) own: &'a RequestId,
    pub(super) reason: &'a str,
    pub(super) length: Duration,
}

impl Way<'_> {
    /// Puts this process in front of all that wait, and has each lock released, once.
    ///
    /// # Errors
    /// When a holder does not stop.
    pub(super) async fn clear(&self, grace: Duration) -> Result<(), Failure> {
        for name in self.names {
            while let Some(held) = self.come_first(name).await?
                && !self.is_own(&held)
            {
                self.end(&held, grace).await?;
                // Who paused it leaves a pause.
                if !held.holder().request_id().is_some_and(|id| id.starts_with(PAUSES)) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns who has the lock, once no other call is before this one.
    async fn come_first(&self, name: &str) -> Result<Option<HeldLock>, Failure> {
        loop {
            // Without a place in the queue, the next one would be another.
            let is_first = self.admin.come_first(name).await?;
            let held = self.admin.holder(name).await?;
            if is_first || held.as_ref().is_some_and(|held| self.is_own(held)) {
                return Ok(held);
            }
            liveness::pause(PAUSE).await;
        }
    }

    fn is_own(&self, held: &HeldLock) -> bool {
        held.holder().request_id() == Some(self.own.as_str())
    }

    /// Waits until the lock is paused by a command that came later and is before this one.
    pub(super) async fn overtaken<T>(&self) -> Result<T, Failure> {
        // The first of all permits, which every pause of them has.
        let Some(name) = self.names.iter().take(2).next_back() else { return pending().await };
        loop {
            liveness::pause(RECHECK).await;
            // The wait itself fails where the server is silent for long.
            if let Ok(Some(held)) = self.admin.holder(name).await
                && is_paused(&held)
            {
                let message = "another pause has come first";
                return Err(self.is_paused_already(
                    &held,
                    message,
                    "; nothing is paused by this one",
                ));
            }
        }
    }

    pub(super) fn is_paused_already(&self, held: &HeldLock, what: &str, rest: &str) -> Failure {
        let resume = connect::command(self.connection, "resume", &[held.name()]);
        let message = format!("{what} ({}); to end that: {resume}{rest}", holder(held.holder()));
        Failure::new("busy", code::BUSY, message).of_lock(held.name()).about(held)
    }

    async fn end(&self, held: &HeldLock, grace: Duration) -> Result<(), Failure> {
        let it = held.holder();
        match it.kind() {
            HolderKind::NoLock => Err(no_lock(held.name())),
            // No one is at work.
            HolderKind::Paused | HolderKind::KeptByMinHold => {
                self.admin.force_release(held, self.reason).await?;
                Ok(())
            }
            HolderKind::Done => {
                let release = connect::command(self.connection, "release", &[held.name()]);
                let message = format!(
                    "nothing runs: it is {}, and would run again after the pause. If that is meant: {release}",
                    holder(it)
                );
                Err(Failure::new("not-released", code::UNANSWERED, message).about(held))
            }
            _ => self.ask(held, grace).await,
        }
    }

    async fn ask(&self, held: &HeldLock, grace: Duration) -> Result<(), Failure> {
        let first = LivenessCheck::at(held.clone());
        let asked = self.admin.revoke(held, self.reason, grace).await?;
        stopped(self.admin, &first, self.connection, asked, (self.length, self.reason)).await
    }
}

const PAUSE: Duration = Duration::from_millis(20);

/// Between two looks for another pause.
const RECHECK: Duration = Duration::from_secs(1);
