//! When to look at a lock again: once its server reports a change, or else after a pause.

use std::time::Duration;

use lockable_runtime::admin::{Admin, Changes};

use super::liveness::pause;

/// What is heard of one lock.
pub(super) struct ChangeFeed<'a> {
    admin: &'a Admin,
    key: &'a str,
    changes: Reported,
}

enum Reported {
    By(Changes),
    /// The connection broke, as in a failover; it is opened again.
    NotNow,
    /// The server does not track, or not for this user.
    Never,
}

impl<'a> ChangeFeed<'a> {
    /// Whatever changes from now on is heard of, where the server reports it.
    pub(super) async fn of(admin: &'a Admin, key: &'a str) -> Self {
        let mut feed = Self { admin, key, changes: Reported::NotNow };
        feed.open().await;
        feed
    }

    async fn open(&mut self) {
        self.changes = match self.admin.changes(self.key).await {
            Ok(Some(changes)) => Reported::By(changes),
            Ok(None) => Reported::Never,
            // A snapshot says so.
            Err(_) => Reported::NotNow,
        };
    }

    /// Whether a change would be heard of.
    pub(super) fn are_heard(&self) -> bool {
        matches!(self.changes, Reported::By(_))
    }

    /// Waits for a change; for the least time in any case, and for the most where nothing is heard.
    pub(super) async fn next(&mut self, least: Duration, most: Duration) {
        pause(least).await;
        let rest = pause(most.saturating_sub(least));
        let Reported::By(changes) = &mut self.changes else {
            rest.await;
            if let Reported::NotNow = self.changes {
                self.open().await;
            }
            return;
        };
        let is_open = tokio::select! {
            biased;
            is_open = changes.next() => is_open,
            () = rest => true,
        };
        if !is_open {
            self.changes = Reported::NotNow;
        }
    }
}
