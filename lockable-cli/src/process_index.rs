//! Which process is behind an id.

use lockable_runtime::admin::{Admin, Process, ProcessId};
use lockable_runtime::{LockError, LockErrorKind};

/// The processes that are connected, if the server says so.
pub(crate) struct ProcessIndex(Option<Vec<Process>>);

/// What is known of one.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    Connected(&'a Process),
    /// It has ended, or cannot reach the server.
    NotConnected,
    /// The server does not say, or the lock has no id.
    Unknown,
}

impl ProcessIndex {
    /// Asks for the processes. A user without the right to see them, or a service that hides them, is no failure.
    pub(crate) async fn of(admin: &Admin) -> Self {
        Self(admin.processes().await.ok())
    }

    /// As [`of`](Self::of), but for a caller that asks this before anything else.
    ///
    /// # Errors
    /// When the server gives no answer, so that each other question would wait as long.
    pub(crate) async fn first_of(admin: &Admin) -> Result<Self, LockError> {
        match admin.processes().await {
            Err(error) if error.kind() == LockErrorKind::Unavailable => Err(error),
            processes => Ok(Self(processes.ok())),
        }
    }

    /// Makes an index in which no process is found.
    pub(crate) fn unknown() -> Self {
        Self(None)
    }

    pub(crate) fn find(&self, id: Option<ProcessId>) -> Known<'_> {
        let (Some(processes), Some(id)) = (&self.0, id) else { return Known::Unknown };
        let found = processes.iter().find(|process| process.id() == id);
        found.map_or(Known::NotConnected, Known::Connected)
    }
}
