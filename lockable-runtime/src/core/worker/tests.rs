use std::pin::pin;
use std::task::{Context, Waker};

use super::*;

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn is_notified(worklist: &Worklist<u32, String>) -> bool {
    pin!(worklist.earlier.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_task_is_notified_only_when_it_would_look_too_late() {
    let worklist = Worklist::new(&Arc::new(BackendContext::in_memory()));
    let add = |key, due| {
        worklist.change(|agenda| drop(agenda.insert(key, String::new(), Some(at(due))))).1
    };
    assert!(add(1, 100), "a task has to attend");
    assert!(
        matches!(worklist.next_step(at(0), 1), TaskStep::Wait(pause) if pause.as_nanos() == 100)
    );
    worklist.look(|agenda| drop(agenda.remove(&1)));
    assert!(!add(2, 200) && !is_notified(&worklist));
    assert!(!add(3, 50) && is_notified(&worklist));
    assert!(!add(4, 60) && !is_notified(&worklist));
    assert!(matches!(worklist.next_step(at(50), 1), TaskStep::Perform(due) if due == [3]));
    assert!(!add(5, 55) && !is_notified(&worklist));
    assert!(
        matches!(worklist.next_step(at(50), 1), TaskStep::Wait(pause) if pause.as_nanos() == 5)
    );
}

#[test]
fn a_list_with_nothing_due_needs_no_task() {
    let worklist = Worklist::new(&Arc::new(BackendContext::in_memory()));
    let add = |key, due| worklist.change(|agenda| drop(agenda.insert(key, String::new(), due))).1;
    assert!(!add(1, None));
    assert!(add(2, Some(at(10))));
    assert!(matches!(worklist.next_step(at(10), 1), TaskStep::Perform(due) if due == [2]));
    assert!(matches!(worklist.next_step(at(10), 1), TaskStep::End));
    assert!(add(3, Some(at(20))), "the task has ended");
}

struct Starter {
    worklist: Worklist<u32, ()>,
    started: Mutex<Vec<(u32, InFlight<Self>)>>,
}

impl Starter {
    fn new() -> Arc<Self> {
        let worklist = Worklist::new(&Arc::new(BackendContext::in_memory()));
        Arc::new(Self { worklist, started: Mutex::default() })
    }

    fn add(self: &Arc<Self>, key: u32, after: Duration) {
        let due = self.worklist.context.backend.now().after(after);
        self.change(|agenda| agenda.insert(key, (), Some(due)));
    }

    fn started(&self) -> Vec<u32> {
        self.started.lock().iter().map(|(key, _)| *key).collect()
    }
}

impl Agent for Starter {
    type Key = u32;
    type Item = ();

    fn worklist(&self) -> &Worklist<u32, ()> {
        &self.worklist
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }

    fn perform(self: &Arc<Self>, due: Vec<u32>) {
        let started = due.into_iter().map(|key| (key, InFlight::begin(self)));
        self.started.lock().extend(started);
    }
}

async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_due_later_is_done_then() {
    let starter = Starter::new();
    starter.add(1, Duration::from_millis(20));
    starter.add(2, Duration::from_millis(10));
    settle().await;
    assert_eq!(starter.started(), [0; 0]);
    tokio::time::advance(Duration::from_millis(11)).await;
    settle().await;
    assert_eq!(starter.started(), [2]);
    tokio::time::advance(Duration::from_millis(10)).await;
    settle().await;
    assert_eq!(starter.started(), [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_limited_number_is_done_at_a_time() {
    let starter = Starter::new();
    for key in 0..300 {
        starter.add(key, Duration::ZERO);
    }
    settle().await;
    assert_eq!(starter.started().len(), MAX_IN_FLIGHT);
    // The end of one lets the next one start.
    for more in 1..=3 {
        let ended = starter.started.lock().remove(0);
        drop(ended);
        settle().await;
        assert_eq!(starter.started().last(), Some(&(255 + more)));
    }
}

/// The task ended with its runtime, and the next change is made on another one.
#[test]
fn a_task_that_its_runtime_dropped_is_replaced() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    let starter = Starter::new();
    runtime().block_on(async { starter.add(1, Duration::from_secs(3_600)) });
    runtime().block_on(async {
        starter.add(2, Duration::ZERO);
        settle().await;
    });
    assert_eq!(starter.started(), [2]);
}
