//! A task that does what stands on an agenda, for as long as anything is due there.

use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::backend::Link;
use crate::types::clock::{Moment, within};

use self::agenda::Agenda;

pub(crate) mod agenda;

/// An agenda that callers change and one task works off.
pub(crate) struct Worklist<K, T> {
    state: Mutex<State<K, T>>,
    /// Told when the task has to look earlier than it meant to.
    earlier: Notify,
}

struct State<K, T> {
    agenda: Agenda<K, T>,
    /// When the task that works it off looks again, whatever happens; none when there is no task.
    /// Written under the lock, so none is missing and none is too many.
    attended: Option<Moment>,
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
    fn link(&self) -> &Link;

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
        let result = change(&mut state.agenda);
        let next = state.agenda.next_due();
        let starts = next.is_some() && state.attended.is_none();
        // Only a task that sleeps for longer is told. Most leases are released long before they fall
        // due, and then it looks once in vain.
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
        look(&mut self.state().agenda)
    }

    fn next_step(&self, now: Moment, capacity: usize) -> Step<K> {
        let mut state = self.state();
        let due = state.agenda.take_due(now, capacity);
        if !due.is_empty() {
            state.attended = Some(now);
            return Step::Perform(due);
        }
        state.attended = state.agenda.next_due();
        match state.attended {
            // More is due than may be started; whoever ends makes room, and says so.
            Some(_) if capacity == 0 => Step::Wait(Duration::MAX),
            Some(next) => Step::Wait(next.since(now)),
            None => Step::End,
        }
    }

    /// Lets the task look again.
    pub(crate) fn wake(&self) {
        self.earlier.notify_one();
    }

    async fn wait(&self, link: &Link, pause: Duration) {
        // Either way the task looks again.
        let _woken: Option<()> =
            within(|| link.backend.timer(pause), self.earlier.notified()).await;
    }

    fn state(&self) -> MutexGuard<'_, State<K, T>> {
        // An agenda changes in steps that cannot fail, so a panic elsewhere leaves it sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, T> Default for Worklist<K, T> {
    fn default() -> Self {
        let state = State { agenda: Agenda::default(), attended: None };
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
            let now = agent.link().backend.now();
            match agent.worklist().next_step(now, agent.capacity()) {
                Step::Perform(due) => agent.perform(due),
                Step::Wait(pause) => agent.worklist().wait(agent.link(), pause).await,
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
            self.agent.worklist().state().attended = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn is_told(worklist: &Worklist<u32, String>) -> bool {
        pin!(worklist.earlier.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_task_is_told_when_it_would_look_too_late_and_only_then() {
        let worklist = Worklist::default();
        let add = |key, due| {
            worklist.change(|agenda| drop(agenda.insert(key, String::new(), Some(at(due))))).1
        };
        assert!(add(1, 100), "somebody has to attend");
        assert!(
            matches!(worklist.next_step(at(0), 1), Step::Wait(pause) if pause.as_nanos() == 100)
        );
        worklist.look(|agenda| drop(agenda.remove(&1)));
        assert!(!add(2, 200) && !is_told(&worklist));
        assert!(!add(3, 50) && is_told(&worklist));
        assert!(!add(4, 60) && !is_told(&worklist));
        assert!(matches!(worklist.next_step(at(50), 1), Step::Perform(due) if due == [3]));
        assert!(!add(5, 55) && !is_told(&worklist));
        assert!(
            matches!(worklist.next_step(at(50), 1), Step::Wait(pause) if pause.as_nanos() == 5)
        );
    }

    #[test]
    fn a_list_with_nothing_due_is_attended_by_nobody() {
        let worklist = Worklist::default();
        let add =
            |key, due| worklist.change(|agenda| drop(agenda.insert(key, String::new(), due))).1;
        assert!(!add(1, None));
        assert!(add(2, Some(at(10))));
        assert!(matches!(worklist.next_step(at(10), 1), Step::Perform(due) if due == [2]));
        assert!(matches!(worklist.next_step(at(10), 1), Step::End));
        assert!(add(3, Some(at(20))), "the task has ended");
    }
}
