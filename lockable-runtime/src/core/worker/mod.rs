//! A task that performs what is on an agenda, for as long as anything is due there.

use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::core::backend::BackendContext;
use crate::core::process::clock::{Moment, within};
use crate::core::process::mutex::Mutex;

use self::agenda::Agenda;

pub(crate) mod agenda;

pub(crate) struct Worklist<K, T> {
    context: Arc<BackendContext>,
    state: Mutex<WorkerState<K, T>>,
    /// Notified when the task has to look earlier than it meant to.
    earlier: Notify,
    in_flight: AtomicUsize,
}

struct WorkerState<K, T> {
    agenda: Agenda<K, T>,
    /// When the task that works it off looks again, whatever happens; `None` if there is no task. Written under the
    /// mutex, so there is always one task.
    attended: Option<Moment>,
}

enum TaskStep<K> {
    Perform(Vec<K>),
    Wait(Duration),
    End,
}

/// The owner of an agenda that [`attend`] works off.
pub(crate) trait Agent: Send + Sync + Sized + 'static {
    type Key: Clone + Eq + Hash + Ord + Send;
    type Item: Send;

    fn worklist(&self) -> &Worklist<Self::Key, Self::Item>;

    /// Spawns the task on the runtime that works for this agent.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);

    fn perform(self: &Arc<Self>, due: Vec<Self::Key>);

    fn capacity(&self) -> usize {
        MAX_IN_FLIGHT.saturating_sub(self.worklist().in_flight.load(Ordering::Acquire))
    }

    fn change<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Agenda<Self::Key, Self::Item>) -> R,
    ) -> R {
        let (result, starts) = self.worklist().change(change);
        if starts {
            self.spawn(attend(Arc::clone(self)));
        }
        result
    }
}

/// An entry that is being performed; there are at most [`MAX_IN_FLIGHT`] of one agent.
pub(crate) struct InFlight<A: Agent>(Arc<A>);

impl<A: Agent> InFlight<A> {
    pub(crate) fn begin(agent: &Arc<A>) -> Self {
        agent.worklist().in_flight.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(agent))
    }
}

impl<A: Agent> Drop for InFlight<A> {
    fn drop(&mut self) {
        let worklist = self.0.worklist();
        let in_flight = worklist.in_flight.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(in_flight > 0, "an entry ends that did not begin");
        if in_flight == MAX_IN_FLIGHT {
            worklist.earlier.notify_one();
        }
    }
}

impl<K: Clone + Eq + Hash + Ord, T> Worklist<K, T> {
    pub(crate) fn new(context: &Arc<BackendContext>) -> Self {
        let state = Mutex::new(WorkerState { agenda: Agenda::default(), attended: None });
        let earlier = Notify::new();
        let in_flight = AtomicUsize::new(0);
        Self { context: Arc::clone(context), state, earlier, in_flight }
    }

    /// Changes the agenda; returns whether the caller has to start [`attend`].
    #[must_use = "a task may have to be started"]
    fn change<R>(&self, change: impl FnOnce(&mut Agenda<K, T>) -> R) -> (R, bool) {
        let mut state = self.state.lock();
        let result = change(&mut state.agenda);
        let next = state.agenda.next_due();
        let starts = next.is_some() && state.attended.is_none();
        // Only a task that sleeps for longer is notified. Most leases are released long before they
        // fall due, and then it looks once in vain.
        let sleeps_longer = |next: &Moment| state.attended.is_none_or(|looks| *next < looks);
        if let Some(next) = next.filter(sleeps_longer) {
            state.attended = Some(next);
            drop(state);
            if !starts {
                self.earlier.notify_one();
            }
        }
        (result, starts)
    }

    /// Looks at the agenda, or takes from it; makes nothing due.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Agenda<K, T>) -> R) -> R {
        look(&mut self.state.lock().agenda)
    }

    fn next_step(&self, now: Moment, capacity: usize) -> TaskStep<K> {
        let mut state = self.state.lock();
        let due = state.agenda.take_due(now, capacity);
        if !due.is_empty() {
            state.attended = Some(now);
            return TaskStep::Perform(due);
        }
        state.attended = state.agenda.next_due();
        match state.attended {
            // More is due than may be started; the end of an entry in flight notifies the task.
            Some(_) if capacity == 0 => TaskStep::Wait(Duration::MAX),
            Some(next) => TaskStep::Wait(next.since(now)),
            None => TaskStep::End,
        }
    }
}

/// Works off the agent's agenda until no entry is due, now or later.
///
/// # Cancel safety
/// When the task is dropped, the next change of the agenda starts another one.
fn attend<A: Agent>(agent: Arc<A>) -> impl Future<Output = ()> + Send {
    // Made before the first poll: a runtime that is shutting down drops the task without one.
    let attendance = Attendance { agent, is_over: false };
    async move {
        let mut attendance = attendance;
        let agent = Arc::clone(&attendance.agent);
        let worklist = agent.worklist();
        let backend = &worklist.context.backend;
        loop {
            match worklist.next_step(backend.now(), agent.capacity()) {
                TaskStep::Perform(due) => agent.perform(due),
                TaskStep::Wait(pause) => {
                    // Either way the task looks again.
                    let timer = || backend.timer(pause);
                    let _woken: Option<()> = within(timer, worklist.earlier.notified()).await;
                }
                TaskStep::End => {
                    attendance.is_over = true;
                    return;
                }
            }
        }
    }
}

/// Lets another task attend when this one is dropped before its end, with the runtime that ran it.
struct Attendance<A: Agent> {
    agent: Arc<A>,
    is_over: bool,
}

impl<A: Agent> Drop for Attendance<A> {
    fn drop(&mut self) {
        if !self.is_over {
            self.agent.worklist().state.lock().attended = None;
        }
    }
}

const MAX_IN_FLIGHT: usize = 256;

#[cfg(test)]
mod tests;
