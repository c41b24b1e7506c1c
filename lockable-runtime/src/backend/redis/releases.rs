//! Releases that go together while many are on their way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, Receiver, Sender};

use super::connection::Connection;
use super::script::{FreeAll, Handed, Release};
use crate::backend::{self, Attempt, Fault};
use crate::clock::boot_time;

/// So many requests to release may be on their way over one connection; what is asked for meanwhile
/// goes together in the next one. As few callers never wait for each other. With 64 busy tasks, 4
/// and 8 were the fastest of 1 to 16.
const LANES: usize = 8;

/// So many releases go together at most: about a sixth of a millisecond of the server's time.
const TOGETHER: usize = 64;

/// Whether the lock is free now, or was left as it is.
type Answer = Result<bool, Fault>;

/// The releases of one connection.
#[derive(Debug, Default)]
pub(super) struct Releases(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    taken_lanes: usize,
    /// In the order of their calls; none while a lane is free.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    attempt: Arc<Attempt>,
    answer: Sender<Answer>,
}

/// How a release gets to the server.
enum Way<'a> {
    /// On a lane of its own, or outside of them.
    Alone(Option<Lane<'a>>),
    Together(Receiver<Answer>),
}

impl Way<'_> {
    /// Alone goes whatever is more than freeing a lock, and what others are known to wait for: they
    /// would wait for a lane as well.
    fn of<'a>(connection: &'a Arc<Connection>, attempt: &Arc<Attempt>) -> Way<'a> {
        if attempt.has_min_hold() || attempt.had_turn() {
            return Way::Alone(None);
        }
        let mut state = connection.releases().state();
        if state.taken_lanes < LANES {
            state.taken_lanes += 1;
            return Way::Alone(Some(Lane(connection)));
        }
        let (answer, answered) = oneshot::channel();
        state.waiting.push_back(Waiting { attempt: Arc::clone(attempt), answer });
        Way::Together(answered)
    }
}

impl Releases {
    /// What goes next on a lane; the lane is free when there is nothing.
    fn next(&self) -> Option<Vec<Waiting>> {
        let mut state = self.state();
        let count = state.waiting.len().min(TOGETHER);
        if count == 0 {
            state.taken_lanes -= 1;
            return None;
        }
        Some(state.waiting.drain(..count).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step, so a panic elsewhere leaves it sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Releases the attempt, alone or with others.
///
/// # Cancel safety
/// A release that is dropped may still be done; those that go with it are.
pub(super) async fn release(
    connection: &Arc<Connection>,
    attempt: &Arc<Attempt>,
) -> Result<backend::Release, Fault> {
    let _lane = match Way::of(connection, attempt) {
        Way::Alone(lane) => lane,
        Way::Together(answered) => {
            let answer = answered.await.unwrap_or_else(|_| Err(connection.runtime_ended()));
            if answer? {
                return Ok(backend::Release::Released);
            }
            None
        }
    };
    alone(connection, attempt, None).await.map(|(found, _)| found)
}

/// Releases the attempt, and queues another one in the same step, where there is one.
pub(super) async fn alone(
    connection: &Connection,
    attempt: &Attempt,
    next: Option<&Attempt>,
) -> Result<(backend::Release, Handed), Fault> {
    // Asked anew for each request, because the rest of a minimum hold grows shorter.
    let kept_for = if attempt.has_min_hold() { attempt.kept_for(boot_time()) } else { None };
    connection.run(&Release { attempt, kept_for, next }).await
}

/// A place for one request on its way. What waits has it next, also when its request is given up.
struct Lane<'a>(&'a Arc<Connection>);

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.0.releases().next() {
            // In a task of its own, because whoever waits may be dropped, and the others not.
            drop(self.0.runtime().spawn(together(Arc::clone(self.0), batch)));
        }
    }
}

async fn together(connection: Arc<Connection>, batch: Vec<Waiting>) {
    let _lane = Lane(&connection);
    let attempts = batch.iter().map(|waiting| &*waiting.attempt).collect();
    let freed = connection.run(&FreeAll { attempts }).await;
    for (place, waiting) in batch.into_iter().enumerate() {
        let answer = match &freed {
            Ok(freed) => Ok(freed.get(place).is_some_and(|is_free| *is_free)),
            Err(fault) => Err(fault.clone()),
        };
        // Whoever gave up has handed the release over.
        drop(waiting.answer.send(answer));
    }
}
