//! What is in the way of a pause that begins now.

use std::time::Duration;

use lockable_runtime::admin::{Admin, HeldLock};
use lockable_runtime::{HolderKind, RequestId};

use crate::arguments::Connection;
use crate::commands::no_lock;
use crate::commands::release::stopped;
use crate::commands::second_look::{self, FirstLook};
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
            // Without a place in the queue, the next one would be another.
            while !self.admin.come_first(name).await? {
                second_look::pause(PAUSE).await;
            }
            if let Some(held) = self.admin.holder(name).await? {
                self.end(&held, grace).await?;
            }
        }
        Ok(())
    }

    async fn end(&self, held: &HeldLock, grace: Duration) -> Result<(), Failure> {
        let it = held.holder();
        match it.kind() {
            HolderKind::NoLock => Err(no_lock(held.name())),
            HolderKind::Exclusive if it.request_id() == Some(self.own.as_str()) => Ok(()),
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
        let first = FirstLook::at(held.clone());
        let asked = self.admin.revoke(held, self.reason).grace(grace).await?;
        stopped(self.admin, &first, self.connection, asked, (self.length, self.reason)).await
    }
}

const PAUSE: Duration = Duration::from_millis(20);
