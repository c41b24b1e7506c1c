//! The acquisitions that a test lets fail, and the counts of a locker's calls.

use std::collections::HashMap;

use crate::core::backend::{Fault, Outcome, TestStage};
use crate::core::process::mutex::Mutex;
use crate::core::types::key::LockKey;

/// The outcomes of the calls for one lock: granted, busy or failed.
///
/// A call that waits is `busy` when it finds another holder or other waiters, and `granted` when it gets the lock.
/// Not included are [`OtherHolder`](crate::testing::OtherHolder)s, and calls that send no request, such as one with
/// an invalid key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// The number of calls that got the lock.
    pub granted: usize,
    /// The number of calls that found another holder.
    pub busy: usize,
    /// The number of calls that [failed](crate::testing::TestLocks::fail_next), as the test required.
    pub failed: usize,
}

#[derive(Default)]
pub(super) struct Staged(Mutex<StagedState>);

#[derive(Default)]
struct StagedState {
    /// How many of the next acquisitions fail.
    failing: HashMap<LockKey, usize>,
    failing_of_any: usize,
    counts: HashMap<LockKey, Counts>,
}

impl Staged {
    pub(super) fn fail_next(&self, key: LockKey) {
        *self.0.lock().failing.entry(key).or_default() += 1;
    }

    pub(super) fn fail_next_of_any(&self) {
        self.0.lock().failing_of_any += 1;
    }

    pub(super) fn counts(&self, key: &LockKey) -> Counts {
        self.0.lock().counts.get(key).copied().unwrap_or_default()
    }
}

impl StagedState {
    /// Whether this acquisition fails; if so, one less will.
    fn fails(&mut self, key: &LockKey) -> bool {
        let of_key = self.failing.get_mut(key).filter(|left| **left > 0);
        let left = of_key.unwrap_or(&mut self.failing_of_any);
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }
}

impl TestStage for Staged {
    fn next_fault(&self, key: &LockKey) -> Option<Fault> {
        let fault = || {
            let fault = Fault::unavailable("the store is unavailable, as the test asked for");
            Fault { proves_absence: true, ..fault }
        };
        self.0.lock().fails(key).then(fault)
    }

    fn count(&self, key: &LockKey, outcome: Outcome) {
        let mut state = self.0.lock();
        let counts = state.counts.entry(key.clone()).or_default();
        *match outcome {
            Outcome::Granted => &mut counts.granted,
            Outcome::Busy => &mut counts.busy,
            Outcome::Failed => &mut counts.failed,
        } += 1;
    }
}
