//! The time under one lock, as the lease says from look to look.

use std::process;

use lockable_runtime::__internals::owner_of;
use lockable_runtime::Lease;

use crate::journal::{Journal, boot_time};
use crate::owner::hash;

/// A body that believes in a lock; writes what it saw when it ends, however it does.
pub(crate) struct Stay {
    journal: Journal,
    lease: Lease,
    /// Zero until the lease was held at a look.
    begin: u64,
    end: u64,
    deadline: u64,
    written: u64,
    late: u64,
}

impl Stay {
    pub(crate) fn begin(journal: &Journal, lease: &Lease) -> Self {
        let (journal, lease, deadline) = (journal.clone(), lease.clone(), deadline(lease));
        let mut stay = Self { journal, lease, begin: 0, end: 0, deadline, written: 0, late: 0 };
        stay.look();
        stay.write();
        stay
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether it holds the lock. A holder that holds it after a moment has held it at that moment.
    pub(crate) fn look(&mut self) -> bool {
        let before = boot_time();
        if !self.lease.is_held() {
            return false;
        }
        if self.begin == 0 {
            self.begin = before;
        }
        self.end = before;
        // Also a lease that is not renewed gets longer once, where a call before has waited for a shorter one.
        self.deadline = self.deadline.max(deadline(&self.lease));
        if self.end > self.written + LONG {
            self.write();
        }
        true
    }

    /// Counts a poll of the whole call that began after the deadline, and has come to the body: from the second on,
    /// because the deadline of the first one may be later than the last that was seen.
    pub(crate) fn polled(&mut self, at: u64) {
        self.late += u64::from(at >= self.deadline && !self.lease.is_held());
    }

    fn write(&mut self) {
        if self.begin == 0 && self.late == 0 {
            return;
        }
        let Self { deadline, begin, end, lease, .. } = self;
        let late = self.late.saturating_sub(1);
        let (pid, key, token) = (process::id(), lease.key(), lease.fencing_token());
        let (key, owner) = (key.as_str(), hash(owner_of(lease)));
        self.journal.write(format_args!(
            "hold {pid} {key} {token} {deadline} {begin} {end} {late} {owner}"
        ));
        self.written = self.end;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.write();
    }
}

/// From looks at the clock between which the process was not stopped.
fn deadline(lease: &Lease) -> u64 {
    loop {
        let before = boot_time();
        let remaining = lease.remaining();
        let after = boot_time();
        if after - before < 50_000 {
            return after + u64::try_from(remaining.as_nanos()).unwrap();
        }
    }
}

/// How much of a long stay a kill may hide.
const LONG: u64 = 50_000_000;
