//! Both stores, and the time that goes by in them.

use std::collections::HashMap;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;
use lockable_tests::Admin;

use super::side::{Asked, Side};
use super::state::{Place, State};
use super::step::Step;
use super::{KEYS, SLOW, UNIT};
use crate::fixture::{Fixture, Memory, Redis};

pub(super) struct World {
    memory: Side,
    redis: Side,
    store: MemoryStore,
    admin: Admin,
    latest: State,
    published: usize,
    /// Dropped after what uses them.
    _fixtures: (Memory, Redis),
}

/// The names in the server, each with its life in milliseconds and what is there.
type Found = Vec<(String, i64, Vec<String>)>;

/// What came of a step, on the side of memory and on that of Redis.
#[derive(Debug)]
pub(super) struct Seen {
    answers: [String; 2],
    states: [State; 2],
    /// Of the attempts that a lock was handed off to, which make it last longer at once.
    claims: [String; 2],
    published: [Vec<String>; 2],
    tokens_rise: [bool; 2],
    /// Whether every fence counter is what its grants left.
    fences_fit: [bool; 2],
}

impl Seen {
    pub(super) fn is_alike(&self) -> bool {
        let Self { answers, states, claims, published, tokens_rise, fences_fit } = self;
        let say_the_same = [answers, claims].into_iter().all(|[memory, redis]| memory == redis);
        let are_alike = states[0] == states[1] && published[0] == published[1];
        say_the_same && are_alike && [tokens_rise, fences_fit] == [&[true, true]; 2]
    }
}

impl World {
    pub(super) fn start() -> Self {
        let fixtures = (Memory::start(), Redis::start());
        let (memory, redis) = (fixtures.0.url(), fixtures.1.url());
        Self {
            store: MemoryStore::open(memory.strip_prefix("memory://").unwrap()).unwrap(),
            admin: Admin::connect(&redis),
            memory: Side::open(&memory, Memory::runtime()),
            redis: Side::open(&redis, Redis::runtime()),
            latest: State::default(),
            published: 0,
            _fixtures: fixtures,
        }
    }

    /// Both stores are empty, and no attempt has been made.
    pub(super) fn clear(&mut self) {
        self.flush();
        self.latest = State::default();
        self.memory.asked.clear();
        self.redis.asked.clear();
    }

    pub(super) fn asked(&self) -> &[Asked] {
        &self.memory.asked
    }

    /// What was in the stores after the latest step.
    pub(super) fn latest(&self) -> &State {
        &self.latest
    }

    /// The count of grants that were published.
    pub(super) fn published(&self) -> usize {
        self.published
    }

    /// Does the same to both; nothing when that took so long that they may differ.
    pub(super) fn take(&mut self, step: &Step) -> Option<Seen> {
        let began = self.server_time();
        let answers = [self.memory.ask(step), self.redis.ask(step)];
        self.intervene(step);
        let states = [self.in_memory(), self.in_redis()];
        // As every process does that a lock is handed off to. It would end in Redis by real time.
        let claims: Vec<_> =
            states[0].handed_off().iter().map(|who| (*who, Some(2 * UNIT))).collect();
        let claims = [&self.memory, &self.redis].map(|side| side.renew(&claims));
        let is_slow = self.server_time() > began + SLOW;
        let memory = self.memory.published(0);
        let redis = self.redis.published(memory.len());
        let mut published = [memory, redis];
        // Those of several locks come in any order.
        for published in &mut published {
            published.sort();
        }
        self.published += published[0].len();
        let tokens_rise = [self.memory.rises, self.redis.rises];
        let fences_fit = self.fit();
        self.latest = states[0].clone();
        let seen = Seen { answers, states, claims, published, tokens_rise, fences_fit };
        (!is_slow).then_some(seen)
    }

    /// Whether the fence counters fit the grants, in memory and in Redis.
    fn fit(&mut self) -> [bool; 2] {
        let all_fit = |side: &mut Side, fences: [Option<u64>; 3]| {
            let fit = KEYS.into_iter().zip(fences).map(|(key, fence)| side.fits(key, fence));
            // Each is looked at, because a look forgets that its key was granted.
            fit.fold(true, |all, one| all & one)
        };
        let memory = KEYS.map(|key| self.look(|store| store.fence(key)));
        let redis = KEYS.map(|key| self.admin.get(&companion("fence", key)));
        // Text that is no number fits no grant.
        let redis = redis.map(|fence| fence.map(|text| text.parse().unwrap_or_default()));
        [all_fit(&mut self.memory, memory), all_fit(&mut self.redis, redis)]
    }

    /// What is done to the stores themselves.
    fn intervene(&mut self, step: &Step) {
        match step {
            Step::PutForeign { key, life } => {
                self.look(|store| store.put_foreign(key, *life));
                let millis = life.as_millis().to_string();
                self.admin.command::<()>(&["SET", key, "another's", "PX", &millis]);
            }
            Step::Delete { key } => {
                self.look(|store| store.delete(key));
                self.admin.del(key);
            }
            Step::Flush => self.flush(),
            Step::SetBack { key } => self.set_back(key),
            Step::Advance { time } => self.advance(*time),
            _ => {}
        }
    }

    /// Inside of the runtime whose clock is paused.
    fn look<T>(&self, look: impl FnOnce(&MemoryStore) -> T) -> T {
        self.memory.runtime.block_on(async { look(&self.store) })
    }

    fn flush(&mut self) {
        self.look(MemoryStore::flush);
        self.redis.forget_after(self.server_time());
        self.admin.flush();
    }

    /// The fence counters in memory only count, whatever the clock says.
    fn set_back(&self, key: &str) {
        const MINUTE: &str = "60000000";
        let count = "if redis.call('PTTL', KEYS[1]) > 0 then \
                         redis.call('INCRBY', KEYS[1], ARGV[1]) \
                     end";
        let fence = companion("fence", key);
        self.admin.try_command(&["EVAL", count, "1", &fence, MINUTE]).unwrap();
    }

    /// Queues stay as they are, because those in memory have no end.
    fn advance(&self, time: Duration) {
        self.memory.runtime.block_on(tokio::time::advance(time));
        let shorten = "for _, key in ipairs(KEYS) do \
                           local life = redis.call('PTTL', key) \
                           if life >= 0 then redis.call('PEXPIRE', key, life - ARGV[1]) end \
                       end";
        let millis = time.as_millis().to_string();
        let [a, b, c] = KEYS;
        self.admin.try_command(&["EVAL", shorten, "3", a, b, c, &millis]).unwrap();
    }

    fn server_time(&self) -> Duration {
        let (seconds, micros): (u64, u64) = self.admin.command(&["TIME"]);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    }

    fn in_memory(&self) -> State {
        let lives: HashMap<_, _> = self.look(MemoryStore::keyspace).into_iter().collect();
        let place = |key| {
            let life: Option<&Duration> = lives.get(key);
            let lock = life.map(|life| (self.memory.holder(key), (*life).into()));
            let queue = self.store.queue(key);
            let queue = queue.iter().map(|owner| self.memory.number(owner)).collect();
            Place { lock, queue }
        };
        State { places: KEYS.map(place).into(), others: Vec::new() }
    }

    /// By the server's own words, not by those of a verb.
    fn in_redis(&self) -> State {
        let look = "local all = {} \
                    for _, name in ipairs(redis.call('KEYS', '*')) do \
                        local kind = redis.call('TYPE', name).ok \
                        local life, texts = redis.call('PTTL', name), {} \
                        if kind == 'string' then texts = {redis.call('GET', name)} \
                        elseif kind == 'list' then texts = redis.call('LRANGE', name, 0, -1) end \
                        table.insert(all, {name, life, texts}) \
                    end \
                    return all";
        let found: Found = self.admin.command(&["EVAL", look, "0"]);
        let mut ending = HashMap::new();
        let mut others = Vec::new();
        for (name, life, texts) in found {
            match u64::try_from(life) {
                Ok(life) => drop(ending.insert(name, (Duration::from_millis(life), texts))),
                Err(_) => others.push(name),
            }
        }
        let places = KEYS.map(|key| self.place(key, &mut ending)).into();
        others.extend(ending.into_keys());
        State { places, others }
    }

    /// Takes what belongs to one key.
    fn place(&self, key: &str, found: &mut HashMap<String, (Duration, Vec<String>)>) -> Place {
        found.remove(&companion("fence", key));
        let lock = found.remove(key);
        let lock = lock.map(|(life, owner)| (self.redis.number(&owner[0]), life.into()));
        let queue = found.remove(&companion("queue", key));
        let queue = queue.map_or_else(Vec::new, |(life, entries)| self.queue(life, &entries));
        Place { lock, queue }
    }

    /// Who waits in a queue, which outlives three leases of each of them.
    fn queue(&self, life: Duration, entries: &[String]) -> Vec<String> {
        let who = |entry: &String| {
            let Some(owner) = entry.strip_prefix("1000 ") else { return entry.clone() };
            let number = self.redis.number(owner);
            let ttl = number.parse().map(|number: usize| self.redis.asked[number].ttl);
            let is_whole = ttl.is_ok_and(|ttl| life + UNIT > 3 * ttl);
            if is_whole { number } else { format!("{number} for {life:?} only") }
        };
        entries.iter().map(who).collect()
    }
}

fn companion(what: &str, key: &str) -> String {
    let tagged = if key.contains('{') { format!(":{key}") } else { format!("{{{key}}}") };
    format!("lockable:{what}:{tagged}")
}
