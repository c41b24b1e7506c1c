//! Renews the leases of held locks, and checks all of them when a connection was opened.
//!
//! See "How is a lease renewed?" in DESIGN.md.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::core::backend::BackendContext;
use crate::core::lease::Lease;
use crate::core::lease::schedule::Cause;
use crate::core::process::clock::Moment;
use crate::core::process::mutex::Mutex;
use crate::core::types::slot::Slot;
use crate::core::worker::Agent as _;

use self::task::{RenewalTask, Scheduled};

mod age;
mod plan;
mod task;

pub(crate) struct Renewals {
    context: Arc<BackendContext>,
    /// One for each runtime that renews: only the background's, if the backend is a server.
    tasks: Mutex<Vec<Arc<RenewalTask>>>,
}

impl Renewals {
    pub(crate) fn new(context: Arc<BackendContext>) -> Self {
        Self { context, tasks: Mutex::default() }
    }

    /// Renews the lease at that moment and as often as needed, or only checks it then, until the result is dropped.
    pub(crate) fn schedule(
        &self,
        lease: &Lease,
        due: Moment,
        renewal_runtime: &Handle,
    ) -> Schedule {
        let task = self.task(renewal_runtime);
        let id = task.schedule_new(lease, due);
        Schedule { task, id }
    }

    pub(crate) fn check_all(
        &self,
        renewal_runtime: &Handle,
        concerns: &dyn Fn(Slot) -> bool,
        cause: Cause,
    ) -> Moment {
        self.task(renewal_runtime).check_all(concerns, cause)
    }

    /// Looks at the watched leases of these slots, as soon as all might be checked.
    pub(crate) fn look_again(&self, renewal_runtime: &Handle, concerns: &dyn Fn(Slot) -> bool) {
        self.task(renewal_runtime).look_again(concerns);
    }

    fn task(&self, renewal_runtime: &Handle) -> Arc<RenewalTask> {
        let mut tasks = self.tasks.lock();
        if let Some(task) =
            tasks.iter().find(|task| task.renewal_runtime.id() == renewal_runtime.id())
        {
            return Arc::clone(task);
        }
        // Those of runtimes that have ended have no lease any more.
        tasks.retain(|task| task.worklist().look(|agenda| agenda.len()) > 0);
        let task = RenewalTask::new(&self.context, renewal_runtime);
        tasks.push(Arc::clone(&task));
        task
    }
}

/// A lease on the agenda for as long as this lives.
pub(crate) struct Schedule {
    task: Arc<RenewalTask>,
    id: u64,
}

impl Schedule {
    /// A closure that looks at the lease, for a caller who has to give this back first.
    pub(crate) fn looker(&self) -> impl FnOnce() + use<> {
        let task = Arc::clone(&self.task);
        let id = self.id;
        move || task.look(id)
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        // Dropped outside of the agenda's lock: the lease may be the last to know its locker.
        let _lease: Option<Scheduled> = self.task.worklist().look(|agenda| agenda.remove(&self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::backend::Attempt;
    use crate::core::process::clock::tokio_time;
    use crate::core::types::key::LockKey;
    use crate::core::types::options::{Options, Ttl};

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_on_the_agenda_until_its_schedule_is_dropped() {
        let context = Arc::new(BackendContext::in_memory());
        let attempt = Arc::new(Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT));
        let lease = Lease::granted(attempt, &Options::default(), Arc::clone(&context));
        let (renewals, renewal_runtime) = (Renewals::new(context), Handle::current());
        let schedule = renewals.schedule(&lease, tokio_time(), &renewal_runtime);
        let leases = || renewals.task(&renewal_runtime).worklist().look(|agenda| agenda.len());
        assert_eq!(leases(), 1);
        drop(schedule);
        assert_eq!(leases(), 0);
    }
}
