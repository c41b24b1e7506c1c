//! One backend, as several processes ask it.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lockable_runtime::__internals::{Place, VerbAttempt, Verbs};
use tokio::runtime::Runtime;

use super::state::Life;
use super::step::{Next, Step};
use super::{LISTENING, PROCESSES, UNIT};
use crate::fixture::LIMIT;

/// A grant as its backend publishes it: the owner, the first of the fencing tokens, and the life.
type Grant = (String, u64, Duration);

/// The backend, the runtime that it is asked from, and what came of that so far.
pub(super) struct Side {
    processes: Vec<Verbs>,
    pub(super) runtime: Runtime,
    pub(super) asked: Vec<Asked>,
    published: Receiver<Grant>,
    /// The last fencing token of each key that is given away.
    tokens: HashMap<String, u64>,
    /// The keys that were granted since the fence counters were looked at.
    granted: HashSet<String>,
    /// Whether the tokens have risen.
    pub(super) rises: bool,
}

/// An attempt, and the process that waits with it, where one does.
pub(super) struct Asked {
    pub(super) attempt: VerbAttempt,
    pub(super) ttl: Duration,
    process: Option<usize>,
}

impl Asked {
    pub(super) fn waits(&self) -> bool {
        self.process.is_some()
    }

    pub(super) fn key(&self) -> &str {
        self.attempt.key()
    }
}

impl Side {
    pub(super) fn open(url: &str, runtime: Runtime) -> Self {
        let mut processes: Vec<_> = (0..PROCESSES).map(|_| Verbs::open(url).unwrap()).collect();
        let (publish, published) = channel();
        for listening in &mut processes[..LISTENING] {
            runtime.block_on(listening.listen(publish.clone())).unwrap();
        }
        let (asked, tokens, granted) = (Vec::new(), HashMap::new(), HashSet::new());
        Self { processes, runtime, asked, published, tokens, granted, rises: true }
    }

    /// What the backend answers; nothing where the step asks none.
    pub(super) fn ask(&mut self, step: &Step) -> String {
        match step {
            Step::Acquire { key, ttl } => {
                let attempt = self.processes[0].attempt(key, *ttl).unwrap();
                self.asked.push(Asked { attempt, ttl: *ttl, process: None });
                self.again(self.asked.len() - 1)
            }
            Step::Enqueue { key, process, ttl } => {
                let attempt = self.wait(key, *process, *ttl);
                self.again(attempt)
            }
            Step::Repeat { attempt } => self.again(*attempt),
            Step::Renew { batch } => self.renew(batch),
            Step::Release { attempt, keep } => self.answer(async |side| {
                let asked = &side.asked[*attempt];
                side.verbs(asked).release(&asked.attempt, None, *keep).await.unwrap()
            }),
            Step::ReleaseAll { attempts } => self.release_all(attempts),
            Step::ReleaseTo { attempt, next, keep } => self.release_to(*attempt, *next, *keep),
            Step::Leave { attempt } => self.answer(async |side| {
                let asked = &side.asked[*attempt];
                side.verbs(asked).leave(&asked.attempt).await.unwrap();
            }),
            Step::Inspect { key } => self.answer(async |side| {
                let held = side.processes[0].inspect(key).await.unwrap();
                held.map(|(owner, life)| (side.number(&owner), Life::from(life.unwrap())))
            }),
            Step::PutForeign { .. }
            | Step::Delete { .. }
            | Step::Flush
            | Step::SetBack { .. }
            | Step::Advance { .. } => String::new(),
        }
    }

    /// A new attempt that waits in that process; gives its number.
    fn wait(&mut self, key: &str, process: usize, ttl: Duration) -> usize {
        let attempt = self.processes[process].attempt(key, ttl).unwrap();
        self.asked.push(Asked { attempt, ttl, process: Some(process) });
        self.asked.len() - 1
    }

    /// Asks for the attempt, in the way that it is asked for.
    fn again(&mut self, attempt: usize) -> String {
        let asked = &self.asked[attempt];
        let verbs = self.verbs(asked);
        if !asked.waits() {
            let token = self.runtime.block_on(verbs.acquire(&asked.attempt)).unwrap();
            let Some(token) = token else { return "busy".to_owned() };
            self.count(attempt, token, 1);
            return "granted".to_owned();
        }
        match self.runtime.block_on(verbs.enqueue(&asked.attempt)).unwrap() {
            Place::Granted(grant) => self.grant(&grant),
            Place::Queued(remaining) => format!("queued for {:?}", remaining.map(Life::from)),
        }
    }

    pub(super) fn renew(&self, batch: &[(usize, Option<Duration>)]) -> String {
        let attempt = |at: usize| self.asked[at].attempt.clone();
        let batch: Vec<_> = batch.iter().map(|(at, ttl)| (attempt(*at), *ttl)).collect();
        self.answer(async |side| side.processes[0].renew(&batch).await.unwrap())
    }

    /// Behind enough releases of locks of no holder that these are batched.
    fn release_all(&self, attempts: &[usize]) -> String {
        const ON_THEIR_WAY: usize = 8;
        let stranger = |n| self.processes[0].attempt(&format!("stranger:{n}"), UNIT).unwrap();
        let asked = attempts.iter().map(|at| self.asked[*at].attempt.clone());
        let all: Vec<_> = (0..ON_THEIR_WAY).map(stranger).chain(asked).collect();
        self.answer(async |side| side.processes[0].release_all(&all).await.unwrap())
    }

    fn release_to(&mut self, attempt: usize, next: Next, keep: Duration) -> String {
        let key = self.asked[attempt].key().to_owned();
        let next = match next {
            Next::Known(next) => next,
            Next::New { process, ttl } => self.wait(&key, process, ttl),
        };
        let (ended, next) = (&self.asked[attempt].attempt, &self.asked[next]);
        let release = self.verbs(next).release(ended, Some(&next.attempt), keep);
        let (found, grant) = self.runtime.block_on(release).unwrap();
        format!("{found:?}, {:?}", grant.map(|grant| self.grant(&grant)))
    }

    /// The grants that were published since the last time, at least `count` unless they do not come.
    pub(super) fn published(&mut self, count: usize) -> Vec<String> {
        let first: Vec<_> =
            (0..count).map_while(|_| self.published.recv_timeout(LIMIT).ok()).collect();
        let further: Vec<_> = self.published.try_iter().collect();
        let grants = first.iter().chain(&further);
        grants.map(|grant| self.grant(grant)).collect()
    }

    /// The grant in words that are the same on both sides, once its tokens are counted.
    fn grant(&mut self, (owner, token, life): &Grant) -> String {
        // A turn may pass within its process sixteen times, each with a token of its own.
        const TURN: u64 = 17;
        let who = self.number(owner);
        if let Ok(attempt) = who.parse() {
            self.count(attempt, *token, TURN);
        }
        format!("granted to {who} for {life:?}")
    }

    fn count(&mut self, attempt: usize, first: u64, tokens: u64) {
        let key = self.asked[attempt].key().to_owned();
        let former = self.tokens.insert(key.clone(), first + tokens - 1);
        self.rises &= former < Some(first);
        self.granted.insert(key);
    }

    /// Whether the fence counter of a key fits its grants: after one it is the last token that was given away,
    /// and never less. It may be more, because tries that failed count too, and may be lost.
    pub(super) fn fits(&mut self, key: &str, fence: Option<u64>) -> bool {
        let latest = self.tokens.get(key).copied();
        if self.granted.remove(key) { fence == latest } else { fence.is_none() || fence >= latest }
    }

    /// Expects nothing of tokens that were ahead of the clock, when their fence counters are lost.
    pub(super) fn forget_after(&mut self, time: Duration) {
        self.tokens.retain(|_, token| u128::from(*token) <= time.as_micros());
    }

    fn answer<T: Debug>(&self, verb: impl AsyncFnOnce(&Self) -> T) -> String {
        format!("{:?}", self.runtime.block_on(verb(self)))
    }

    fn verbs(&self, asked: &Asked) -> &Verbs {
        &self.processes[asked.process.unwrap_or_default()]
    }

    /// The number of the attempt that wrote this, with the mark of a lock that stays taken.
    pub(super) fn number(&self, owner: &str) -> String {
        let (mark, owner) = owner.split_at(usize::from(owner.starts_with(['~', '='])));
        match self.asked.iter().position(|asked| asked.attempt.owner() == owner) {
            Some(number) => format!("{mark}{number}"),
            None => format!("{mark}another"),
        }
    }

    /// Who has a lock, by the backend's own word.
    pub(super) fn holder(&self, key: &str) -> String {
        let held = self.runtime.block_on(self.processes[0].inspect(key)).unwrap();
        self.number(&held.unwrap().0)
    }
}
