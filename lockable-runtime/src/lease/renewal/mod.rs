//! Renews the leases of held locks, and checks all of them when a connection was opened.
//!
//! See "How is a lease renewed?" in DESIGN.md.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use crate::backend::Link;
use crate::lease::{Lease, schedule};
use crate::types::clock::Moment;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::worker::Agent as _;
use crate::worker::agenda::Agenda;

use self::task::RenewalTask;

mod task;

/// The held locks of one locker.
pub(crate) struct Renewals {
    link: Arc<Link>,
    /// One for each runtime that renews: the background's alone, where the backend is a server.
    tasks: Mutex<Vec<Arc<RenewalTask>>>,
}

impl Renewals {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link, tasks: Mutex::default() }
    }

    /// Checks this lease whenever a connection was opened, until the registration is dropped; renews it,
    /// too, where it needs that. It was granted at that moment, for so long.
    pub(crate) fn register(
        &self,
        lease: &Lease,
        (since, granted): (Moment, Ttl),
        home: &Handle,
    ) -> Registration {
        let due = lease.needs_renewal().then(|| schedule::due(since, granted));
        let task = self.task(home);
        let id = task.register(lease, due);
        Registration { task, id }
    }

    /// The registered leases of a lock.
    pub(crate) fn leases(&self, key: &LockKey) -> Vec<Lease> {
        // Each is asked outside of the table's lock.
        let tasks = self.tasks().clone();
        let of_key = |agenda: &mut Agenda<u64, Lease>| -> Vec<Lease> {
            agenda.items().filter(|lease| lease.key() == key).cloned().collect()
        };
        tasks.iter().flat_map(|task| task.worklist().look(of_key)).collect()
    }

    fn task(&self, home: &Handle) -> Arc<RenewalTask> {
        let mut tasks = self.tasks();
        if let Some(task) = tasks.iter().find(|task| task.home.id() == home.id()) {
            return Arc::clone(task);
        }
        // Those of runtimes that have ended have no lease any more.
        tasks.retain(|task| task.worklist().look(|agenda| agenda.len()) > 0);
        let task = RenewalTask::new(&self.link, home);
        tasks.push(Arc::clone(&task));
        task
    }

    fn tasks(&self) -> MutexGuard<'_, Vec<Arc<RenewalTask>>> {
        // Every change is one insertion or removal, so a panic elsewhere leaves it sound.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lease that is renewed or checked for as long as this lives.
///
/// A guard may outlive its locker; this keeps what renews its lease.
pub(crate) struct Registration {
    task: Arc<RenewalTask>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Dropped outside of the table's lock: the lease may be the last to know its locker.
        let _lease: Option<Lease> = self.task.worklist().look(|agenda| agenda.remove(&self.id));
    }
}
