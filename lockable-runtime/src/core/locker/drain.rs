//! Acquiring nothing new, before the process ends.

use super::Locker;

impl Locker {
    /// Makes this locker acquire nothing new, for the time [before a deployment stops the
    /// process](crate::guide::maintenance#drain-a-process-before-a-deployment).
    ///
    /// Work that holds a lock ends as it would, renewed; other work fails, so that a queue can give it to another
    /// process. Then [`shutdown`](crate::shutdown) waits for the last releases. It concerns this locker and its clones,
    /// on every backend, and cannot be undone. Calling it again changes nothing.
    ///
    /// # Guarantees
    /// - Calls return an error for which [`is_unavailable`](crate::LockError::is_unavailable) holds, and send no
    ///   request. So do [`redeem`](Locker::redeem) and the [campaigns](crate::LockRequest::lead) of this process, which
    ///   continue and win no more.
    /// - Waiting calls return the same error at once, and leave their queue; a grant that arrives just then is passed
    ///   on.
    ///
    /// # What this does not guarantee
    /// A call whose first request is on its way may still get its lock. Nothing that runs is stopped: a leader leads
    /// until its task is aborted. Other lockers of the process acquire as before.
    pub fn drain(&self) {
        self.acquirer().gate.close();
    }
}
