use tokio::sync::watch;

/// The changes of a lock and its queue; made by `Admin::changes`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Changes(watch::Receiver<()>);

impl Changes {
    pub(super) fn new(reports: watch::Receiver<()>) -> Self {
        Self(reports)
    }

    /// Waits until the lock or its queue may have changed since the last report; `false` when nothing is reported any
    /// more, as after a failover.
    ///
    /// # Cancel safety
    /// No change is missed: the next call returns it.
    pub async fn next(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}
