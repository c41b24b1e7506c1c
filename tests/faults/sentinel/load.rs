//! Many locks that are held and renewed, and many calls that wait for a few others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::wait;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::support::{SWITCH, Sections};
use crate::support::elapse;

const HOLDERS: usize = 100;
const LINES: usize = 20;
const WAITERS: usize = 1_000;
/// Each stands for a process.
const LOCKERS: usize = 4;

/// The lease of the renewed locks.
const LEASE: Duration = Duration::from_secs(10);

/// How long a waiter that is served holds its lock: in every other line so long that a failover finds it.
fn hold(line: usize) -> Duration {
    Duration::from_millis(if line.is_multiple_of(2) { 20 } else { 100 })
}

pub(super) struct Load {
    pub(super) sections: Arc<Sections>,
    /// How often a waiter of each locker was served, in each line.
    served: Arc<Vec<AtomicU64>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    faults: Arc<Mutex<Faults>>,
}

/// What went wrong, in words.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// Renewed locks that were lost.
    pub(super) lost: Vec<String>,
    /// Calls that waited in vain.
    pub(super) refused: Vec<String>,
    /// Locks of those who were served that were lost in their short time.
    pub(super) interrupted: Vec<String>,
    /// Releases that failed.
    pub(super) unreleased: Vec<String>,
}

impl Faults {
    pub(super) fn counts(&self) -> String {
        let Self { lost, refused, interrupted, unreleased } = self;
        let [lost, refused, interrupted, unreleased] =
            [lost, refused, interrupted, unreleased].map(Vec::len);
        format!(
            "{lost} lost, {refused} refused, {interrupted} interrupted, {unreleased} unreleased"
        )
    }
}

impl Load {
    /// Returns when all locks are held and each line moves, in which calls of every locker wait.
    pub(super) async fn start(url: &str) -> Self {
        let load = Self {
            sections: Arc::default(),
            served: Arc::new((0..LOCKERS * LINES).map(|_| AtomicU64::new(0)).collect()),
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
            faults: Arc::default(),
        };
        load.started(url).await
    }

    async fn started(mut self, url: &str) -> Self {
        for number in 0..LOCKERS {
            let locker = Locker::builder().url(url).expire(LEASE).connect().await.unwrap();
            for key in (number..HOLDERS).step_by(LOCKERS) {
                let guard = locker.lock(format!("held:{key}")).renew().acquire().await.unwrap();
                self.tasks.spawn(self.client().hold(guard));
            }
            for waiter in (number..WAITERS).step_by(LOCKERS) {
                let line = waiter / LOCKERS % LINES;
                let place = Place { locker: locker.clone(), line, number: number * LINES + line };
                self.tasks.spawn(self.client().wait(place));
            }
        }
        // The second one of a locker was in a queue, as all behind it are.
        let is_queued = |served: &AtomicU64| served.load(Ordering::Relaxed) > 1;
        wait::until_async(SWITCH, async || self.served.iter().all(is_queued)).await;
        self
    }

    /// Waits until in each line another holder has ended, or begun and ended.
    pub(super) async fn each_line_moves(&self) {
        let finished = || (0..LINES).map(|number| self.finished_in(number)).collect::<Vec<_>>();
        let before = finished();
        let moved = || finished().iter().zip(&before).all(|(after, before)| after > before);
        wait::until_async(SWITCH, async || moved()).await;
    }

    fn finished_in(&self, number: usize) -> u64 {
        self.sections.finished_of(&format!("disLock:{}", line(number)))
    }

    /// Ends all calls and returns what went wrong.
    pub(super) async fn end(mut self) -> Faults {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.faults.lock().unwrap().clone()
    }

    fn client(&self) -> Client {
        let (sections, faults) = (Arc::clone(&self.sections), Arc::clone(&self.faults));
        let served = Arc::clone(&self.served);
        Client { sections, served, stop: self.stop.subscribe(), faults }
    }
}

fn line(number: usize) -> String {
    format!("line:{number}")
}

/// Where a call waits.
struct Place {
    locker: Locker,
    line: usize,
    /// Of the line and the locker together.
    number: usize,
}

struct Client {
    sections: Arc<Sections>,
    served: Arc<Vec<AtomicU64>>,
    stop: watch::Receiver<bool>,
    faults: Arc<Mutex<Faults>>,
}

impl Client {
    async fn hold(self, guard: LockGuard) {
        self.sections.enter(&guard);
        tokio::select! {
            error = guard.lost() => self.note(|faults| &mut faults.lost, &error),
            () = self.stopped() => {}
        }
        self.end(guard).await;
    }

    async fn wait(self, place: Place) {
        let key = line(place.line);
        loop {
            let request = place.locker.lock(&key).wait_at_most(2 * SWITCH);
            let acquired = tokio::select! {
                acquired = request.acquire() => acquired,
                () = self.stopped() => return,
            };
            match acquired {
                Ok(guard) => self.served(guard, hold(place.line)).await,
                Err(error) => self.note(|faults| &mut faults.refused, &error),
            }
            self.served[place.number].fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn served(&self, guard: LockGuard, hold: Duration) {
        self.sections.enter(&guard);
        tokio::select! {
            error = guard.lost() => self.note(|faults| &mut faults.interrupted, &error),
            () = elapse(hold) => {}
        }
        self.end(guard).await;
    }

    async fn stopped(&self) {
        drop(self.stop.clone().wait_for(|stop| *stop).await);
    }

    async fn end(&self, guard: LockGuard) {
        self.sections.leave(&guard);
        if let Err(error) = guard.release().await {
            self.note(|faults| &mut faults.unreleased, &error);
        }
    }

    fn note(&self, list: fn(&mut Faults) -> &mut Vec<String>, error: &LockError) {
        list(&mut self.faults.lock().unwrap()).push(error.to_string());
    }
}
