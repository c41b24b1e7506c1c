//! Many locks that are held and renewed, and many calls that wait for a few others.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, LockGuard, Locker, LockerBuilder};
use lockable_tests::wait::HANG;
use lockable_tests::{Sections, wait};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Each stands for a process.
pub(crate) const LOCKERS: usize = 4;

/// Longer than any test: a lease, a deadline and a limit that none reaches.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// How many calls there are, of each kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// Locks that are held until the end, and renewed.
    pub(crate) holders: usize,
    /// The lease of all locks.
    pub(crate) lease: Duration,
    /// Calls that wait for a few locks, one after the other, again and again.
    pub(crate) waiters: usize,
    /// The locks that they wait for.
    pub(crate) lines: usize,
    /// Calls that acquire a lock which no one else wants, again and again.
    pub(crate) tasks: usize,
}

/// How long a call that is served holds its lock: in every other line so long that a failover finds it.
fn hold(line: usize) -> Duration {
    Duration::from_millis(if line.is_multiple_of(2) { 40 } else { 100 })
}

pub(crate) struct Load {
    pub(crate) sections: Arc<Sections>,
    url: String,
    crowd: Crowd,
    /// How often a waiter of each locker was served, in each line.
    served: Arc<Vec<AtomicU64>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    faults: Arc<Mutex<Vec<Fault>>>,
}

/// What went wrong with a lock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) what: What,
    /// The lock's name in the server.
    pub(crate) name: String,
    error: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// A renewed lock was lost.
    Lost,
    /// A call waited in vain, or found a lock busy or unavailable that no one else wants.
    Refused,
    /// The lock of a call that did not wait was lost in its short time.
    Interrupted,
    /// A lock of a line was lost: one that was handed off has a first lease of a second, which its holder extends in the
    /// background. It is no fault where the machine has no time for that.
    HandOff,
    /// A release failed.
    Unreleased,
}

impl Load {
    /// Returns when all locks are held and each line moves, in which calls of every locker wait.
    pub(crate) async fn start(url: &str, crowd: Crowd) -> Self {
        let load = Self {
            sections: Arc::default(),
            url: url.to_owned(),
            crowd,
            served: Arc::new((0..LOCKERS * crowd.lines).map(|_| AtomicU64::new(0)).collect()),
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
            faults: Arc::default(),
        };
        load.started().await
    }

    async fn started(mut self) -> Self {
        let Crowd { holders, lease, waiters, lines, tasks } = self.crowd;
        for number in 0..LOCKERS {
            let locker = patient(&self.url).expire(lease).connect().await.unwrap();
            let of_locker = |count: usize| (number..count).step_by(LOCKERS);
            for holder in of_locker(holders) {
                let guard = locker.lock(held(holder)).renew().acquire().await.unwrap();
                self.tasks.spawn(self.client().hold(guard));
            }
            for waiter in of_locker(waiters) {
                let line = waiter / LOCKERS % lines;
                let place = Place { locker: locker.clone(), line, number: number * lines + line };
                self.tasks.spawn(self.client().wait(place));
            }
            for task in of_locker(tasks) {
                self.tasks.spawn(self.client().alone(locker.clone(), task));
            }
        }
        // The second one of a locker was in a queue, as all behind it are.
        let is_queued = |served: &AtomicU64| served.load(Ordering::Relaxed) > 1;
        wait::until_async(HANG, async || self.served.iter().all(is_queued)).await;
        self
    }

    /// Waits until each line has moved twice: after a failover, the first holders may have been served before it.
    pub(crate) async fn each_line_moves(&self) {
        self.lines_move(|_| true).await;
    }

    /// The same of those lines whose names in the server are such.
    pub(crate) async fn lines_move(&self, are_meant: impl Fn(&str) -> bool) {
        let lines = (0..self.crowd.lines).map(|number| name(&line(number)));
        let lines: Vec<_> = lines.filter(|line| are_meant(line)).collect();
        let finished = || lines.iter().map(|line| self.sections.finished_of(line));
        let before: Vec<_> = finished().collect();
        let moved = || finished().zip(&before).all(|(after, before)| after >= before + 2);
        wait::until_async(HANG, async || moved()).await;
    }

    /// The names in the server of all locks that are held until the end.
    pub(crate) fn held(&self) -> impl Iterator<Item = String> {
        (0..self.crowd.holders).map(|number| name(&held(number)))
    }

    /// The names of the renewed locks that were lost until now.
    pub(crate) fn lost(&self) -> HashSet<String> {
        names_of_lost(&self.faults.lock().unwrap())
    }

    /// Ends all calls; returns their sections, and what went wrong.
    pub(crate) async fn end(mut self) -> (Arc<Sections>, Vec<Fault>) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        let faults = std::mem::take(&mut *self.faults.lock().unwrap());
        println!("{} sections, {} faults", self.sections.finished(), faults.len());
        (self.sections, faults)
    }

    fn client(&self) -> Client {
        let (sections, faults) = (Arc::clone(&self.sections), Arc::clone(&self.faults));
        let served = Arc::clone(&self.served);
        Client { sections, served, stop: self.stop.subscribe(), faults }
    }
}

pub(crate) fn names_of_lost(faults: &[Fault]) -> HashSet<String> {
    let lost = faults.iter().filter(|fault| fault.what == What::Lost);
    lost.map(|fault| fault.name.clone()).collect()
}

fn held(number: usize) -> String {
    format!("held:{number}")
}

fn line(number: usize) -> String {
    format!("line:{number}")
}

fn name(key: &str) -> String {
    format!("disLock:{key}")
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
    faults: Arc<Mutex<Vec<Fault>>>,
}

impl Client {
    async fn hold(self, guard: LockGuard) {
        self.sections.enter(&guard);
        tokio::select! {
            error = guard.lease().lost() => self.note(What::Lost, &guard, &error),
            () = self.stopped() => {}
        }
        self.end(guard, What::Lost).await;
    }

    async fn wait(self, place: Place) {
        let key = line(place.line);
        loop {
            let request = place.locker.lock(&key).wait(LONG);
            let acquired = tokio::select! {
                acquired = request.acquire() => acquired,
                () = self.stopped() => return,
            };
            match acquired {
                Ok(guard) => self.served(guard, hold(place.line), What::HandOff).await,
                Err(error) => self.refused(&key, &error),
            }
            self.served[place.number].fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn alone(self, locker: Locker, number: usize) {
        let key = format!("task:{number}");
        while !*self.stop.borrow() {
            match locker.lock(&key).acquire().await {
                Ok(guard) => self.served(guard, hold(1), What::Interrupted).await,
                Err(error) => {
                    self.refused(&key, &error);
                    // It may have been refused at once.
                    elapse(hold(1)).await;
                }
            }
        }
    }

    async fn served(&self, guard: LockGuard, hold: Duration, loss: What) {
        self.sections.enter(&guard);
        tokio::select! {
            error = guard.lease().lost() => self.note(loss, &guard, &error),
            () = elapse(hold) => {}
        }
        self.end(guard, loss).await;
    }

    async fn stopped(&self) {
        drop(self.stop.clone().wait_for(|stop| *stop).await);
    }

    /// A loss may be found by the release alone.
    async fn end(&self, guard: LockGuard, loss: What) {
        self.sections.leave(&guard);
        let key = guard.lease().key().as_str().to_owned();
        if let Err(error) = guard.release().await {
            self.note_of(if error.is_lost() { loss } else { What::Unreleased }, key, &error);
        }
    }

    fn refused(&self, key: &str, error: &LockError) {
        self.note_of(What::Refused, name(key), error);
    }

    fn note(&self, what: What, guard: &LockGuard, error: &LockError) {
        self.note_of(what, guard.lease().key().as_str().to_owned(), error);
    }

    fn note_of(&self, what: What, name: String, error: &LockError) {
        self.faults.lock().unwrap().push(Fault { what, name, error: error.to_string() });
    }
}

/// A locker of a server that has much to do.
pub(crate) async fn connect(url: &str) -> Locker {
    patient(url).connect().await.unwrap()
}

fn patient(url: &str) -> LockerBuilder {
    Locker::builder().url(url).command_deadline(LONG).connect_deadline(LONG)
}

#[expect(clippy::disallowed_methods, reason = "how long a lock is held is real time")]
pub(crate) async fn elapse(duration: Duration) {
    tokio::time::sleep(duration).await;
}

#[expect(clippy::disallowed_methods, reason = "waits are measured in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
