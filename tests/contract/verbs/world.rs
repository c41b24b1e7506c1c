//! Both stores, and the time that passes in them.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use tokio::time::Instant;

use super::companions::{self, Companions, Counting, Joined, fence_life};
use super::messages::Messages;
use super::reference::Reference;
use super::server::{Found, StoppedServer};
use super::side::Side;
use super::state::{Life, Place, State};
use super::step::{Scene, Step, What};
use super::{KEYS, keys};
use crate::fixture::real_time;

pub(super) struct World {
    memory: Reference,
    redis: Side,
    messages: Messages,
    /// What is stored, by the latest step.
    state: State,
    companions: [Companions; KEYS],
    last: Option<Step>,
    /// The processes that have tried for a lock: their connections may have seeded each fence counter, beside another
    /// one too.
    tried: HashSet<usize>,
    pub(super) verbs: u32,
    pub(super) woken: u32,
    /// Dropped after what uses it.
    server: StoppedServer,
}

/// What came of a step, on the side of memory and on that of Redis.
pub(super) struct Seen {
    answers: [String; 2],
    states: [State; 2],
    woken: [Vec<usize>; 2],
    /// Those by which the attempts that memory wakes would be woken, and those that were published.
    messages: [Vec<String>; 2],
    /// The rules of Redis alone that do not hold.
    broken: Vec<String>,
}

impl Seen {
    /// Nothing where both are alike.
    pub(super) fn differences(self) -> Vec<String> {
        let mut all = self.broken;
        all.extend(difference("answers", &self.answers));
        all.extend(difference("states", &self.states));
        all.extend(difference("woken", &self.woken));
        all.extend(difference("messages", &self.messages));
        all
    }
}

fn difference<T: Debug + PartialEq>(what: &str, [memory, redis]: &[T; 2]) -> Option<String> {
    (memory != redis).then(|| format!("{what}\n  in memory {memory:?}\n  in Redis  {redis:?}"))
}

impl World {
    pub(super) fn start() -> Self {
        let server = StoppedServer::start();
        let redis = Side::open(&server.url(), real_time());
        let channels = redis.channels();
        Self {
            memory: Reference::start(),
            messages: Messages::subscribe(&server.url(), &channels),
            redis,
            state: State::default(),
            companions: Default::default(),
            last: None,
            tried: HashSet::new(),
            verbs: 0,
            woken: 0,
            server,
        }
    }

    /// Both stores are empty, and the keys of this sequence are new.
    pub(super) fn clear(&mut self, seed: u32) {
        self.server.flush();
        let keys = keys(seed);
        let fences: HashSet<_> = keys.iter().map(|key| companions::fence(key)).collect();
        assert_eq!(fences.len(), KEYS, "the keys share a fence counter; leave this seed out");
        self.memory.clear(keys.clone());
        self.redis.clear(keys);
        self.state = State::default();
        self.companions = Default::default();
        self.last = None;
    }

    /// What the next step is chosen by.
    pub(super) fn scene(&self) -> Scene<'_> {
        let ends = self.companions.iter().filter_map(|companions| companions.queue_ends).min();
        let patience = ends.map_or(u64::MAX, |ends| ends.saturating_sub(self.server.now().millis));
        Scene {
            asked: &self.memory.side.asked,
            state: &self.state,
            patience,
            last: self.last.as_ref(),
        }
    }

    /// Does the same to both.
    pub(super) fn take(&mut self, step: Step) -> Seen {
        self.pass(step.later);
        let began = Instant::now();
        let answers = [self.memory.side.ask(&step.what), self.redis.ask(&step.what)];
        let spent = began.elapsed();
        self.intervene(&step.what);
        let memory = self.memory.state();
        let (found, heard) = self.server.look(&mut self.messages);
        let unmarked = self.unmarked(&step.what, &found);
        let (mut redis, companions) = self.in_redis(found);
        self.align(&step.what, &memory, &mut redis, spent);
        let woken = self.memory.side.woken(0);
        let messages = [self.messages_to(&woken), heard];
        // One that is misspelt does not arrive.
        let count = if messages[0] == messages[1] { woken.len() } else { 0 };
        let heard = self.redis.woken(count);
        let mut broken = self.broken(&step, &memory, &companions);
        broken.extend(unmarked);
        let states = [memory, redis];
        if step.is_repeat && states.iter().any(|state| *state != self.state) {
            broken.push("a repeat changed something".to_owned());
        }
        self.note(step, &states[0], companions, woken.len());
        Seen { answers, states, woken: [woken, heard], messages, broken }
    }

    /// The locks with waiters that a command would delete. A try that takes a lock leaves it so until a waiter asks
    /// again: that is done here, because memory needs no mark.
    fn unmarked(&self, what: &What, found: &Found) -> Vec<String> {
        let asked = &self.memory.side.asked;
        let is_try = what.asks(asked).is_some_and(|attempt| !asked[attempt].waits);
        let mut unmarked = Vec::new();
        for name in &self.redis.keys {
            let Some((_, text)) = found.get(name) else { continue };
            let owner = text.concat();
            if owner.get(16..17) != Some("-") || !found.contains_key(&companions::queue(name)) {
                continue;
            }
            if is_try {
                self.server.replace(name, &format!("+{owner}"));
            } else {
                unmarked.push(format!("{name:?} has waiters, and no mark"));
            }
        }
        unmarked
    }

    /// What was done, and what came of it, for the next step.
    fn note(&mut self, step: Step, state: &State, companions: [Companions; KEYS], woken: usize) {
        self.verbs += u32::from(step.what.is_verb());
        self.woken += u32::try_from(woken).unwrap();
        self.state = state.clone();
        self.companions = companions;
        let asked = &self.memory.side.asked;
        match step.what.asks(asked).map(|attempt| &asked[attempt]) {
            Some(asked) if !asked.waits => drop(self.tried.insert(asked.process)),
            _ => {}
        }
        self.last = Some(step);
    }

    /// The rules that have no counterpart in memory, as far as they do not hold.
    fn broken(&mut self, step: &Step, after: &State, found: &[Companions; KEYS]) -> Vec<String> {
        let mut broken = Vec::new();
        for (key, found) in found.iter().enumerate() {
            broken.extend(self.unfit_fence(key, found));
            if step.what.is_verb() {
                broken.extend(self.unexpected(&step.what, key, &after.places[key], found));
            }
        }
        if !self.memory.side.tokens.rise || !self.redis.tokens.rise {
            broken.push("the tokens do not rise".to_owned());
        }
        broken
    }

    /// A fence counter is the last token that a step gave away.
    fn unfit_fence(&mut self, key: usize, found: &Companions) -> Option<String> {
        let sides = [&mut self.memory.side, &mut self.redis];
        let granted = sides.map(|side| side.tokens.take_granted(key));
        let in_memory = granted[0].is_none_or(|last| self.memory.fence(key) == Some(last));
        let counted = found.fence.map(|fence| fence.value);
        let in_redis = granted[1].is_none_or(|last| counted == Some(last));
        let text = || format!("fence counter {key} is {counted:?} in Redis after {granted:?}");
        (!in_memory || !in_redis).then(text)
    }

    /// What is beside a lock that the verb cannot have left there.
    fn unexpected(
        &self,
        what: &What,
        key: usize,
        after: &Place,
        found: &Companions,
    ) -> Vec<String> {
        let (asked, now) = (&self.memory.side.asked, self.server.now());
        let (former, before) = (self.companions[key].at(now), &self.state.places[key]);
        let mut unexpected = Vec::new();
        let fences = former.fences(self.counting(what, key), now);
        let may_be = |expected: &Option<_>| match (found.fence, *expected) {
            (Some(found), Some(expected)) => found.may_be(expected, now),
            (found, expected) => found == expected,
        };
        if !fences.iter().any(may_be) {
            let (found, of) = (found.fence, &fences[..fences.len().min(3)]);
            unexpected.push(format!("fence counter {key} is {found:?} and not one of {of:?}, …"));
        }
        let is_about = what.keys(asked).contains(&key);
        let joined = is_about.then(|| Joined::by(what, asked, before, after)).flatten();
        let ends = former.queue_ends(joined, after, now);
        if ends != found.queue_ends {
            let found = found.queue_ends;
            unexpected.push(format!("queue {key} ends at {found:?} and not at {ends:?}"));
        }
        unexpected
    }

    /// What the step does to the fence counter of this key.
    fn counting(&self, what: &What, key: usize) -> Counting {
        let asked = &self.memory.side.asked;
        let is_about = what.keys(asked).contains(&key);
        match what.asks(asked).map(|attempt| &asked[attempt]) {
            Some(asked) if !asked.waits && is_about => {
                let is_first = !self.tried.contains(&asked.process);
                Counting::One { life: fence_life(asked.ttl), is_first }
            }
            Some(asked) if !asked.waits => Counting::Beside { life: fence_life(asked.ttl) },
            _ if !is_about => Counting::Nothing,
            Some(asked) if asked.ttl > MINUTE => Counting::Turn { life: fence_life(asked.ttl) },
            // A waiter that is woken has a token once it asks.
            None if !matches!(what, What::ReleaseTo { .. }) => Counting::Nothing,
            _ => Counting::Turn { life: 0 },
        }
    }

    /// The messages by which these attempts are woken.
    fn messages_to(&self, woken: &[usize]) -> Vec<String> {
        let text = |attempt: &usize| {
            let asked = &self.redis.asked[*attempt];
            format!("{}\n{}", asked.attempt.owner(), self.redis.keys[asked.key])
        };
        let mut messages: Vec<_> = woken.iter().map(text).collect();
        messages.sort();
        messages
    }

    /// What is done to the stores themselves.
    fn intervene(&mut self, what: &What) {
        self.memory.intervene(what);
        let key = |key: usize| self.redis.keys[key].clone();
        match what {
            What::PutForeign { key: at, text, life } => self.server.put(&key(*at), text, *life),
            What::Delete { key: at } => self.server.delete(&key(*at)),
            What::Flush => {
                self.server.flush();
                let now = self.server.now().micros;
                (0..KEYS).for_each(|key| self.redis.tokens.forget_after(key, now));
            }
            What::CountAhead { key: at } => {
                self.server.count_ahead(&companions::fence(&key(*at)));
            }
            What::LoseCount { key: at, life } => {
                self.server.put(&companions::fence(&key(*at)), "1", *life);
                self.redis.tokens.forget_after(*at, self.server.now().micros);
            }
            _ => {}
        }
    }

    fn pass(&mut self, time: Duration) {
        let time = self.state.beside_ends(time);
        if !time.is_zero() {
            self.memory.pass(time);
            self.server.pass(time);
        }
    }

    fn in_redis(&self, mut found: Found) -> (State, [Companions; KEYS]) {
        let now = self.server.now();
        let mut places: [Place; KEYS] = Default::default();
        let mut companions = [Companions::default(); KEYS];
        for (key, name) in self.redis.keys.iter().enumerate() {
            let lock = found
                .remove(name)
                .map(|(life, text)| (self.redis.number(&text.concat()), Life::from_pttl(life)));
            let (companion, entries) = Companions::take(name, &mut found, now);
            let queue = entries.iter().map(|entry| self.redis.queued(entry)).collect();
            companions[key] = companion;
            places[key] = Place { lock, queue };
        }
        // A script seeds the fence counters of other slots beside that of its lock.
        found.retain(|name, (life, _)| !name.starts_with("lockable:fence:") || *life < 0);
        (State { places, others: found.into_keys().collect() }, companions)
    }

    /// The rest of a minimum hold is computed by the client's clock, which runs: what went by on that one
    /// until the request was made is given back.
    fn align(&self, what: &What, memory: &State, redis: &mut State, spent: Duration) {
        if !what.keeps() {
            return;
        }
        let most = u64::try_from(spent.as_millis()).unwrap() + 1;
        let places = memory.places.iter().zip(&mut redis.places).zip(&self.redis.keys);
        for ((memory, redis), key) in places {
            if let (Some((_, due)), Some((_, left))) = (&memory.lock, &mut redis.lock)
                && let (Some(millis), Some(found)) = (due.millis(), left.millis())
                && found < millis
                && millis - found <= most
            {
                self.server.set_life(key, millis);
                *left = *due;
            }
        }
    }
}

/// Fence counters live longer where they count the grants of longer leases.
const MINUTE: Duration = Duration::from_secs(60);
