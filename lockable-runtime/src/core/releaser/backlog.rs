//! How much work waits in the background: calls, `shutdown` and the end of the process wait for it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::core::backend::Attempt;
use crate::core::background::exit::{self, Work};
use crate::core::process::Process;
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;
use crate::core::types::permit::PermitsKey;
use crate::core::worker::agenda::trim;

pub(super) struct Backlog {
    /// Where it was made: a forked child leaves the counts of its parent alone.
    process: Process,
    /// How much work is [pending](Pending); spares the mutexes while there is none, which is nearly always.
    open: AtomicUsize,
    /// The pending work of the whole process, which waits for that a moment before it ends.
    work: &'static Work,
    /// How many releases of a key, or of its permits, have not been tried yet: a new acquisition waits for them.
    untried: Mutex<HashMap<LockKey, usize>>,
    changed: Notify,
}

impl Backlog {
    pub(super) fn new() -> Arc<Self> {
        exit::watch_this_thread();
        Arc::new(Self {
            process: Process::current(),
            open: AtomicUsize::new(0),
            work: Work::of_this_process(),
            untried: Mutex::default(),
            changed: Notify::new(),
        })
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    pub(super) async fn drained(&self) {
        self.wait_until(|| self.open() == 0).await;
    }

    pub(super) async fn tried(&self, key: &LockKey) {
        self.wait_until(|| !self.untried.lock().contains_key(key)).await;
    }

    async fn wait_until(&self, is_met: impl Fn() -> bool) {
        loop {
            // Registered before the look, so that a change right after it is not missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if is_met() {
                return;
            }
            changed.await;
        }
    }
}

/// Work in the background that `shutdown` and the end of the process wait for, until this is dropped.
pub(crate) struct Pending(Arc<Backlog>);

impl Pending {
    pub(super) fn begin(backlog: &Arc<Backlog>) -> Self {
        exit::watch_this_thread();
        backlog.open.fetch_add(1, Ordering::AcqRel);
        backlog.work.begin();
        Self(Arc::clone(backlog))
    }

    pub(super) fn is_own(&self) -> bool {
        self.0.process.is_current()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.is_own() {
            self.0.work.end();
            let open = self.0.open.fetch_sub(1, Ordering::AcqRel);
            debug_assert!(open > 0, "work ends that did not begin");
            self.0.changed.notify_waiters();
        }
    }
}

/// A release that has not been tried yet; calls for its key wait until this is dropped.
pub(super) struct Untried(Arc<Backlog>, LockKey);

impl Untried {
    pub(super) fn begin(backlog: &Arc<Backlog>, attempt: &Arc<Attempt>) -> Self {
        // A call for a permit waits for those of all.
        let key = PermitsKey::of_permit(&attempt.key)
            .map_or_else(|| attempt.key.clone(), PermitsKey::into_key);
        *backlog.untried.lock().entry(key.clone()).or_default() += 1;
        Self(Arc::clone(backlog), key)
    }
}

impl Drop for Untried {
    fn drop(&mut self) {
        let Self(backlog, key) = self;
        if !backlog.process.is_current() {
            return;
        }
        let mut untried = backlog.untried.lock();
        debug_assert!(untried.contains_key(key), "a release is tried that did not wait");
        if let Some(count) = untried.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                untried.remove(key);
                trim(&mut untried);
            }
        }
        drop(untried);
        backlog.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Handle;

    use super::*;
    use crate::core::process::clock::{timer_on, within};
    use crate::core::types::options::Ttl;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_no_longer_than_for_the_first_try_of_a_release() {
        let backlog = Backlog::new();
        let attempt = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
        let untried = Untried::begin(&backlog, &attempt);
        let in_vain = || timer_on(&Handle::current(), Duration::from_secs(3_600));
        let call = within(in_vain, backlog.tried(&attempt.key));
        let (is_tried, ()) = tokio::join!(call, async { drop(untried) });
        assert!(is_tried.is_some(), "nothing wakes the call");
    }
}
