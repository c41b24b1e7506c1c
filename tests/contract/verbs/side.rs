//! One backend, as several processes ask it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lockable_runtime::__internals::{GrantTo, Place, VerbAttempt, Verbs, WakeUpOf};
use lockable_runtime::LockError;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::state::Life;
use super::step::{FOREIGN, Next, What};
use super::tokens::Tokens;
use super::{KEYS, LISTENING, PROCESSES};
use crate::fixture::LIMIT;

/// The backend, the runtime that it is asked from, and what was asked in this sequence.
pub(super) struct Side {
    processes: Vec<Verbs>,
    pub(super) runtime: Runtime,
    pub(super) keys: [String; KEYS],
    pub(super) asked: Vec<Asked>,
    /// Each attempt's number, by its owner token.
    numbers: HashMap<String, usize>,
    wake_ups: Receiver<WakeUpOf>,
    pub(super) tokens: Tokens,
}

/// An attempt, and who made it.
pub(super) struct Asked {
    pub(super) attempt: VerbAttempt,
    pub(super) key: usize,
    pub(super) process: usize,
    pub(super) ttl: Duration,
    pub(super) waits: bool,
}

/// A grant: to whom, and for how long. Its fields are only printed.
#[derive(Debug)]
#[expect(dead_code, reason = "answers are compared as they are printed")]
struct Granted {
    who: usize,
    life: Duration,
}

impl Side {
    pub(super) fn open(url: &str, runtime: Runtime) -> Self {
        let mut processes: Vec<_> = (0..PROCESSES).map(|_| Verbs::open(url).unwrap()).collect();
        let (wake, wake_ups) = channel();
        for listening in &mut processes[..LISTENING] {
            listening.listen(wake.clone());
        }
        let (keys, asked, numbers) = (Default::default(), Vec::new(), HashMap::new());
        Self { processes, runtime, keys, asked, numbers, wake_ups, tokens: Tokens::none() }
    }

    /// Where the waiters of the processes that listen are woken.
    pub(super) fn channels(&self) -> Vec<String> {
        let attempt = |verbs: &Verbs| verbs.attempt("k", Duration::from_secs(1), None).unwrap();
        let listening = self.processes[..LISTENING].iter().map(attempt);
        let origin = |owner: &str| owner.split_once('.').unwrap().0.to_owned();
        listening.map(|one| format!("lockable:grant:{}", origin(one.owner()))).collect()
    }

    /// Begins a sequence about other keys.
    pub(super) fn clear(&mut self, keys: [String; KEYS]) {
        self.keys = keys;
        self.asked.clear();
        self.numbers.clear();
        self.tokens = Tokens::none();
    }

    /// What the backend answers; nothing where it is not asked.
    pub(super) fn ask(&mut self, what: &What) -> String {
        match what {
            What::Acquire { key, process, ttl } => self.ask_first(*key, *process, *ttl, false),
            What::Enqueue { key, process, ttl } => self.ask_first(*key, *process, *ttl, true),
            What::Ask { attempt } => self.ask_for(*attempt),
            What::Renew { batch } => {
                let attempt = |at: usize| self.asked[at].attempt.clone();
                let batch: Vec<_> = batch.iter().map(|(at, ttl)| (attempt(*at), *ttl)).collect();
                said(&self.wait(self.processes[0].renew(&batch)))
            }
            What::Release { attempt, keep } => {
                let (asked, verbs) = self.one(*attempt);
                said(&self.wait(verbs.release(&asked.attempt, None, *keep)))
            }
            What::ReleaseAll { attempts } => self.release_all(attempts),
            What::ReleaseTo { attempt, next, keep } => self.release_to(*attempt, *next, *keep),
            What::Leave { attempt } => {
                let (asked, verbs) = self.one(*attempt);
                said(&self.wait(verbs.leave(&asked.attempt)))
            }
            What::Transfer { attempt, next } => self.transfer(*attempt, *next),
            What::Inspect { key } => self.inspect(*key),
            _ => String::new(),
        }
    }

    fn ask_first(&mut self, key: usize, process: usize, ttl: Duration, waits: bool) -> String {
        let attempt = self.attempt(key, process, ttl, waits);
        self.ask_for(attempt)
    }

    /// A new attempt; gives its number. Every other one has the identity of a request.
    fn attempt(&mut self, key: usize, process: usize, ttl: Duration, waits: bool) -> usize {
        let number = self.asked.len();
        let identity = (number % 2 == 1).then(|| format!("request 1000 {number}"));
        let (verbs, name, identity) =
            (&self.processes[process], &self.keys[key], identity.as_deref());
        let attempt = if waits {
            verbs.attempt(name, ttl, identity)
        } else {
            verbs.attempt_of_try(name, ttl, identity)
        };
        let attempt = attempt.unwrap();
        self.add(Asked { attempt, key, process, ttl, waits })
    }

    fn add(&mut self, asked: Asked) -> usize {
        let number = self.asked.len();
        self.numbers.insert(asked.attempt.owner().to_owned(), number);
        self.asked.push(asked);
        number
    }

    /// Asks for the attempt, in the way that it is asked for.
    fn ask_for(&mut self, attempt: usize) -> String {
        let (asked, verbs) = self.one(attempt);
        if !asked.waits {
            let acquired = self.wait(verbs.acquire(&asked.attempt));
            if let Ok(Some(token)) = acquired {
                self.tokens.grant(self.asked[attempt].key, [token; 2]);
            }
            return said(&acquired.map(|token| token.is_some()));
        }
        match self.wait(verbs.enqueue(&asked.attempt)) {
            Ok(Place::Granted(grant)) => format!("{:?}", self.grant(&grant)),
            Ok(Place::Queued(remaining)) => {
                format!("queued for {:?}", remaining.map_or(Life::Endless, Life::from))
            }
            Err(error) => error.to_string(),
        }
    }

    /// Behind enough releases of locks of no holder that these are batched.
    fn release_all(&self, attempts: &[(usize, Duration)]) -> String {
        const ON_THEIR_WAY: usize = 8;
        let life = Duration::from_secs(1);
        let stranger = |n| self.processes[0].attempt(&format!("stranger:{n}"), life, None).unwrap();
        let asked = attempts.iter().map(|(at, keep)| (self.asked[*at].attempt.clone(), *keep));
        let strangers = (0..ON_THEIR_WAY).map(|n| (stranger(n), Duration::ZERO));
        let all: Vec<_> = strangers.chain(asked).collect();
        said(&self.wait(self.processes[0].release_all(&all)))
    }

    fn release_to(&mut self, attempt: usize, next: Next, keep: Duration) -> String {
        let next = match next {
            Next::Known(next) => next,
            Next::New { process, ttl } => self.attempt(self.asked[attempt].key, process, ttl, true),
        };
        let (next, verbs) = self.one(next);
        let ended = &self.asked[attempt].attempt;
        match self.wait(verbs.release(ended, Some(&next.attempt), keep)) {
            Ok((found, grant)) => {
                let found = format!("{found:?}");
                format!("{found}, {:?}", grant.map(|grant| self.grant(&grant)))
            }
            Err(error) => error.to_string(),
        }
    }

    /// The lock of a ticket goes to a new attempt, and any other to a ticket.
    fn transfer(&mut self, attempt: usize, next: Next) -> String {
        let key = self.asked[attempt].key;
        let next = match next {
            Next::Known(next) => next,
            Next::New { process, ttl } if self.asked[attempt].attempt.owner().starts_with('@') => {
                self.attempt(key, process, ttl, true)
            }
            Next::New { process, ttl } => {
                let ticket = self.asked[attempt].attempt.ticket(ttl).unwrap();
                self.add(Asked { attempt: ticket, key, process, ttl, waits: false })
            }
        };
        let (next, verbs) = self.one(next);
        said(&self.wait(verbs.transfer(&self.asked[attempt].attempt, &next.attempt)))
    }

    fn inspect(&self, key: usize) -> String {
        let held = self.wait(self.processes[0].inspect(&self.keys[key]));
        let told = |(owner, life): (String, Option<Duration>)| {
            (self.number(&owner), life.map_or(Life::Endless, Life::from))
        };
        said(&held.map(|held| held.map(told)))
    }

    /// The attempts that were woken since the last time, at least `count` unless that does not come.
    pub(super) fn woken(&self, count: usize) -> Vec<usize> {
        let mut wake_ups: Vec<_> =
            (0..count).map_while(|_| self.wake_ups.recv_timeout(LIMIT).ok()).collect();
        wake_ups.extend(self.wake_ups.try_iter());
        let attempt = |(key, owner): &WakeUpOf| {
            let attempt = self.numbers[owner];
            assert_eq!(
                *key, self.keys[self.asked[attempt].key],
                "{attempt} is woken for another lock"
            );
            attempt
        };
        let mut woken: Vec<_> = wake_ups.iter().map(attempt).collect();
        // Those of several locks come in any order.
        woken.sort_unstable();
        woken
    }

    /// The grant in words that are the same on both sides, once its tokens are counted.
    fn grant(&mut self, (owner, tokens, life): &GrantTo) -> Granted {
        let who = self.numbers[owner];
        self.tokens.grant(self.asked[who].key, *tokens);
        Granted { who, life: *life }
    }

    fn one(&self, attempt: usize) -> (&Asked, &Verbs) {
        let asked = &self.asked[attempt];
        (asked, &self.processes[asked.process])
    }

    /// The answer, unless the backend hangs.
    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let answered = self.runtime.block_on(async { timeout(LIMIT, answer).await });
        answered.expect("the backend answers")
    }

    /// The number of the attempt that wrote this, with the mark of a lock that stays taken. The mark of a waiter is
    /// none: memory needs no such mark.
    pub(super) fn number(&self, owner: &str) -> String {
        let owner = owner.strip_prefix('+').unwrap_or(owner);
        let (mark, token) = owner.split_at(usize::from(owner.starts_with(['~', '='])));
        match self.numbers.get(token) {
            Some(number) => format!("{mark}{number}"),
            None if owner == "another holder" || FOREIGN.contains(&owner) => "another".to_owned(),
            None => owner.to_owned(),
        }
    }

    /// The number of the attempt with this entry.
    pub(super) fn queued(&self, entry: &str) -> String {
        let Some((millis, owner)) = entry.split_once(' ') else { return entry.to_owned() };
        let number = self.number(owner);
        let ttl = number.parse().map(|number: usize| self.asked[number].ttl.as_millis());
        if ttl.is_ok_and(|ttl| ttl.min(1_000).to_string() == millis) {
            number
        } else {
            entry.to_owned()
        }
    }

    /// Who has a lock, by the backend's own word.
    pub(super) fn holder(&self, key: usize) -> String {
        let held = self.wait(self.processes[0].inspect(&self.keys[key]));
        self.number(&held.unwrap().unwrap().0)
    }
}

fn said<T: Debug>(answer: &Result<T, LockError>) -> String {
    answer.as_ref().map_or_else(ToString::to_string, |answer| format!("{answer:?}"))
}
