//! What the scripts of permits do, the reference in memory does too.
//!
//! Goal: an attempt with two permits, a permit with two holders, a waiter that is passed over, a token that does not
//! rise; and each way in which the scripts differ from the reference.
//! Method: both run the same random verbs of many attempts. After each, the owners of all permits and the queue are
//! compared, by the numbers of the attempts. No time passes. One of three processes does not listen, as if it had died.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lockable_runtime::__internals::{MemoryStore, Place, VerbAttempt, Verbs, WakeUpOf};
use lockable_tests::{Admin, Server, long_form};
use tokio::time::Instant;

use super::dice::Dice;
use crate::fixture::LIMIT;

const FAMILY: &str = "p:{export}";
const QUEUE: &str = "lockable:queue:#:p:{export}";
const PERMITS: usize = 3;
const ATTEMPTS: usize = 9;
const STEPS: usize = 40;
const LEASE: Duration = Duration::from_secs(600);

/// For so long a permit is kept for its waiter, by clocks that no test pauses.
const KEPT: Duration = Duration::from_secs(1);

#[tokio::test]
async fn permits_in_redis_are_those_in_memory() {
    let server = Server::start();
    let (admin, url) = (server.admin(), server.url());
    let store = MemoryStore::open("permit-steps").unwrap();
    for seed in 1..=long_form(40, 2_000) {
        loop {
            let begun = Instant::now();
            match differs(&admin, &url, &store, u64::try_from(seed).unwrap()).await {
                // A machine that stops for a moment lets one of them pass.
                Some(difference) => assert!(begun.elapsed() >= KEPT, "seed {seed}: {difference}"),
                None => break,
            }
        }
    }
}

/// The first steps after which both differ.
async fn differs(admin: &Admin, url: &str, store: &MemoryStore, seed: u64) -> Option<String> {
    admin.flush();
    store.flush();
    let mut redis = Side::open(url);
    let mut memory = Side::open("memory://permit-steps");
    let mut dice = Dice(seed);
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let (verb, number) = (dice.below(8), dice.below(ATTEMPTS));
        let step = Step::of(verb, number);
        steps.push(step);
        let answers = [redis.take(step).await, memory.take(step).await];
        step.deletes(|name| admin.del(name));
        step.deletes(|name| store.delete(name));
        let in_redis = (redis.owners().await, redis.numbers(&queue(admin)), &answers[0]);
        let in_memory =
            (memory.owners().await, memory.numbers(&store.queue("p:{export}#1")), &answers[1]);
        if in_redis != in_memory {
            return Some(format!("{in_redis:?} and {in_memory:?} after {steps:?}"));
        }
        let woken = memory.woken(0);
        let woken = (redis.woken(woken.len()), woken);
        if woken.0 != woken.1 {
            return Some(format!("{woken:?} after {steps:?}"));
        }
        redis.tokens_rise();
        memory.tokens_rise();
    }
    None
}

/// Goal: a waiter that has the permit a second late, when the lock itself has ended.
/// Method: the lock is brought into that second.
#[tokio::test]
async fn a_permit_whose_minimum_hold_is_over_is_its_waiters() {
    let server = Server::start();
    let verbs = Verbs::open_impatient(&server.url(), LIMIT).unwrap();
    let attempt = || verbs.attempt_for_permit(FAMILY, 1, LEASE).unwrap();
    let (holder, waiter) = (attempt(), attempt());
    let is_granted =
        async |attempt| matches!(verbs.enqueue(attempt).await.unwrap(), Place::Granted(..));
    assert!(is_granted(&holder).await && !is_granted(&waiter).await);
    let held = holder.of_permit(&permit(1)).unwrap();
    verbs.release(&held, None, LEASE).await.unwrap();
    assert!(!is_granted(&waiter).await);
    assert_eq!(server.admin().command::<i64>(&["PEXPIRE", &permit(1), "1000"]), 1);
    assert!(is_granted(&waiter).await);
}

fn queue(admin: &Admin) -> Vec<String> {
    let entries: Vec<String> = admin.command(&["LRANGE", QUEUE, "0", "-1"]);
    entries.iter().map(|entry| entry.split_once(' ').unwrap().1.to_owned()).collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Try(usize),
    Enqueue(usize),
    Leave(usize),
    /// By the name of the permit where it has one.
    Release(usize),
    /// As a holder whose answer was lost.
    ReleaseAny(usize),
    /// An outsider deletes the permit.
    Delete(usize),
}

impl Step {
    fn of(verb: usize, number: usize) -> Self {
        match verb {
            0 => Self::Try(number),
            1..=3 => Self::Enqueue(number),
            4 => Self::Leave(number),
            5 => Self::Release(number),
            6 => Self::ReleaseAny(number),
            _ => Self::Delete(number % PERMITS + 1),
        }
    }

    fn deletes(self, delete: impl Fn(&str)) {
        if let Self::Delete(number) = self {
            delete(&permit(number));
        }
    }
}

/// One of the two stores, with what happened there.
struct Side {
    processes: [Verbs; 3],
    wake_ups: Receiver<WakeUpOf>,
    attempts: HashMap<usize, VerbAttempt>,
    /// The numbers of all attempts, by their owner tokens.
    numbers: HashMap<String, usize>,
    latest: u64,
    /// The first and the last of the grant of this step.
    tokens: Vec<[u64; 2]>,
}

fn permit(number: usize) -> String {
    format!("{FAMILY}#{number}")
}

impl Side {
    fn open(url: &str) -> Self {
        let open = || Verbs::open_impatient(url, LIMIT).unwrap();
        let mut processes = [open(), open(), open()];
        let (sender, wake_ups) = channel();
        for process in &mut processes[..2] {
            process.listen(sender.clone());
        }
        let (attempts, numbers) = (HashMap::new(), HashMap::new());
        Self { processes, wake_ups, attempts, numbers, latest: 0, tokens: Vec::new() }
    }

    fn process(&self, number: usize) -> &Verbs {
        &self.processes[number % 3]
    }

    fn attempt(&mut self, number: usize) -> VerbAttempt {
        let permits = u8::try_from(PERMITS).unwrap();
        let new = || self.process(number).attempt_for_permit(FAMILY, permits, LEASE).unwrap();
        let attempt = self.attempts.get(&number).cloned().unwrap_or_else(new);
        self.numbers.insert(attempt.owner().to_owned(), number);
        self.attempts.insert(number, attempt.clone());
        attempt
    }

    /// What the answer was, but for tokens.
    async fn take(&mut self, step: Step) -> String {
        match step {
            Step::Try(number) => {
                let attempt = self.attempt(number);
                let token = self.process(number).acquire(&attempt).await.unwrap();
                self.tokens.extend(token.map(|token| [token, token]));
                format!("acquired {}", token.is_some())
            }
            Step::Enqueue(number) => {
                let attempt = self.attempt(number);
                match self.process(number).enqueue(&attempt).await.unwrap() {
                    Place::Granted((_, tokens, _)) => {
                        self.tokens.push(tokens);
                        "granted".to_owned()
                    }
                    Place::Queued(remaining) => format!("queued {remaining:?}"),
                }
            }
            Step::Leave(number) => {
                let attempt = self.attempt(number);
                self.process(number).leave(&attempt).await.unwrap();
                // The next one under this number has a token of its own.
                self.attempts.remove(&number);
                "left".to_owned()
            }
            Step::Release(number) => {
                let attempt = self.attempt(number);
                let holds = self.owners().await.iter().position(|owner| *owner == Some(number));
                let Some(at) = holds else { return "holds none".to_owned() };
                let held = attempt.of_permit(&permit(at + 1)).unwrap();
                let release = self.process(number).release(&held, None, Duration::ZERO).await;
                self.attempts.remove(&number);
                format!("{:?}", release.unwrap().0)
            }
            Step::ReleaseAny(number) => {
                let attempt = self.attempt(number);
                let release = self.process(number).release(&attempt, None, Duration::ZERO).await;
                let found = format!("{:?}", release.unwrap().0);
                self.process(number).leave(&attempt).await.unwrap();
                self.attempts.remove(&number);
                found
            }
            Step::Delete(_) => String::new(),
        }
    }

    /// The numbers of those that hold the permits; each holds one at most.
    async fn owners(&self) -> Vec<Option<usize>> {
        let mut owners = Vec::new();
        for number in 1..=PERMITS {
            let held = self.processes[0].inspect(&permit(number)).await.unwrap();
            owners.push(held.map(|(owner, _)| self.numbers[&owner]));
        }
        for (at, owner) in owners.iter().enumerate() {
            assert!(owner.is_none() || !owners[..at].contains(owner), "has two: {owners:?}");
        }
        owners
    }

    fn numbers(&self, owners: &[String]) -> Vec<usize> {
        owners.iter().map(|owner| self.numbers[owner]).collect()
    }

    /// For whom permits are kept since the last look, by name.
    fn woken(&self, expected: usize) -> Vec<(usize, String)> {
        let late = || self.wake_ups.recv_timeout(LIMIT).ok();
        let mut wake_ups: Vec<_> = (0..expected).map_while(|_| late()).collect();
        wake_ups.extend(self.wake_ups.try_iter());
        let mut woken: Vec<_> =
            wake_ups.into_iter().map(|(permit, owner)| (self.numbers[&owner], permit)).collect();
        // Each process has a connection of its own.
        woken.sort_unstable();
        woken
    }

    /// All tokens of a step are newer than those before it.
    fn tokens_rise(&mut self) {
        for [first, last] in self.tokens.drain(..) {
            assert!(first > self.latest, "{first} after {}", self.latest);
            self.latest = last;
        }
    }
}
