//! A task that does what stands on an agenda, for as long as anything is due there.

use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::agenda::Agenda;
use crate::backend::Backend;
use crate::clock::{Moment, within};

/// An agenda that callers change and one task works off.
#[derive(Debug)]
pub(crate) struct Worklist<K, T> {
    state: Mutex<State<K, T>>,
    /// Told when the task has to look earlier than it meant to.
    earlier: Notify,
}

#[derive(Debug)]
struct State<K, T> {
    agenda: Agenda<K, T>,
    /// Whether a task works it off; written under the lock, so none is missing and none is too many.
    is_attended: bool,
}

/// What the task does next.
enum Step<K> {
    Perform(Vec<K>),
    Wait(Duration),
    End,
}

/// Someone whose agenda is worked off by [`attend`].
pub(crate) trait Agent: Send + Sync + 'static {
    type Key: Clone + Eq + Hash + Ord + Send;
    type Item: Send;

    fn worklist(&self) -> &Worklist<Self::Key, Self::Item>;
    fn backend(&self) -> &Arc<dyn Backend>;

    /// How many entries may be started now.
    fn capacity(&self) -> usize;

    /// Starts what is due, without waiting for its end.
    fn perform(self: &Arc<Self>, due: Vec<Self::Key>);
}

impl<K: Clone + Eq + Hash + Ord, T> Worklist<K, T> {
    /// Changes the agenda; says whether the caller has to start [`attend`].
    #[must_use = "a task may have to be started"]
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Agenda<K, T>) -> R) -> (R, bool) {
        let mut state = self.state();
        let former = state.agenda.next_due();
        let result = change(&mut state.agenda);
        let next = state.agenda.next_due();
        let starts = next.is_some() && !state.is_attended;
        state.is_attended |= starts;
        drop(state);
        if !starts && next.is_some_and(|next| former.is_none_or(|former| next < former)) {
            self.earlier.notify_one();
        }
        (result, starts)
    }

    /// Looks at the agenda, or takes from it; makes nothing due.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Agenda<K, T>) -> R) -> R {
        look(&mut self.state().agenda)
    }

    fn next_step(&self, now: Moment, capacity: usize) -> Step<K> {
        let mut state = self.state();
        let due = state.agenda.take_due(now, capacity);
        if !due.is_empty() {
            return Step::Perform(due);
        }
        match state.agenda.next_due() {
            // More is due than may be started; whoever ends makes room, and says so.
            Some(_) if capacity == 0 => Step::Wait(Duration::MAX),
            Some(next) => Step::Wait(next.since(now)),
            None => {
                state.is_attended = false;
                Step::End
            }
        }
    }

    /// Lets the task look again.
    pub(crate) fn wake(&self) {
        self.earlier.notify_one();
    }

    async fn wait(&self, backend: &Arc<dyn Backend>, pause: Duration) {
        // Either way the task looks again.
        let _woken: Option<()> = within(|| backend.timer(pause), self.earlier.notified()).await;
    }

    fn state(&self) -> MutexGuard<'_, State<K, T>> {
        // An agenda changes in steps that cannot fail, so a panic elsewhere leaves it sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Default for Worklist<K, T> {
    fn default() -> Self {
        let state = State { agenda: Agenda::default(), is_attended: false };
        Self { state: Mutex::new(state), earlier: Notify::new() }
    }
}

/// Works off the agent's agenda until nothing is due there any more, now or later.
///
/// # Cancel safety
/// When the task is dropped, the next change of the agenda starts another one.
pub(crate) fn attend<A: Agent>(agent: Arc<A>) -> impl Future<Output = ()> + Send {
    // Made before the first poll: a runtime that is shutting down drops the task without one.
    let attendance = Attendance { agent, is_over: false };
    async move {
        let mut attendance = attendance;
        let agent = Arc::clone(&attendance.agent);
        loop {
            let now = agent.backend().now();
            match agent.worklist().next_step(now, agent.capacity()) {
                Step::Perform(due) => agent.perform(due),
                Step::Wait(pause) => agent.worklist().wait(agent.backend(), pause).await,
                Step::End => {
                    attendance.is_over = true;
                    return;
                }
            }
        }
    }
}

/// Gives the agenda free when the task is dropped before its end, with the runtime that ran it.
struct Attendance<A: Agent> {
    agent: Arc<A>,
    is_over: bool,
}

impl<A: Agent> Drop for Attendance<A> {
    fn drop(&mut self) {
        if !self.is_over {
            self.agent.worklist().state().is_attended = false;
        }
    }
}
