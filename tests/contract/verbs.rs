//! Each script and the commands of an acquisition do what the reference in memory does.
//!
//! Goal: a script that answers, or leaves its lock, in another way than the memory backend.
//! Method: both are asked for the same random sequences of verbs, and their answers and all of
//! their locks are compared after each step. Time goes by in steps: memory's clock is paused and
//! advanced, and in Redis every lock's life is made shorter by as much.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use lockable_runtime::__internals::{MemoryStore, VerbAttempt, Verbs};
use lockable_tests::Admin;
use tokio::runtime::Runtime;

use crate::fixture::{Fixture, Memory, Redis};

#[test]
fn every_verb_does_in_redis_what_it_does_in_memory() {
    let mut world = World::start();
    for seed in 1..=SEQUENCES {
        world.flush();
        world.attempts.clear();
        let mut dice = Dice(seed);
        let mut done = Vec::new();
        for _ in 0..STEPS {
            let step = Step::any(&mut dice, world.attempts.len());
            done.push(format!("{step:?}"));
            let answers = world.perform(&step);
            let differs = answers.differ();
            let locks = world.locks();
            assert!(
                !differs && alike(&locks),
                "seed {seed}: {answers:?}, locks {locks:?}, after\n{}",
                done.join("\n")
            );
        }
    }
}

const SEQUENCES: u64 = 40;
const STEPS: usize = 100;

/// The first has a hash tag.
const KEYS: [&str; 3] = ["{a}:1", "b", "c"];

/// All lives are multiples of this. The time that the test itself takes, which counts in Redis
/// alone, is far from it.
const UNIT: Duration = Duration::from_secs(20);

/// What is done to both stores. Attempts are named by their number, and so are keys.
#[derive(Debug)]
enum Step {
    /// A new attempt.
    Acquire {
        key: usize,
        ttl: Duration,
    },
    /// The same attempt once more.
    Repeat {
        attempt: usize,
    },
    Renew {
        batch: Vec<(usize, Option<Duration>)>,
    },
    Release {
        attempt: usize,
        keep: Duration,
    },
    Inspect {
        key: usize,
    },
    PutForeign {
        key: usize,
        life: Duration,
    },
    Delete {
        key: usize,
    },
    Flush,
    Advance {
        time: Duration,
    },
}

impl Step {
    fn any(dice: &mut Dice, attempts: usize) -> Self {
        let key = dice.below(KEYS.len());
        if attempts == 0 {
            return Self::Acquire { key, ttl: dice.life() };
        }
        // Mostly one of the latest, which may be held.
        let attempt = attempts - 1 - dice.below(attempts.min(6));
        match dice.below(100) {
            0..25 => Self::Acquire { key, ttl: dice.life() },
            25..32 => Self::Repeat { attempt },
            32..57 => Self::Renew { batch: Self::batch(dice, attempts) },
            57..75 => {
                let keep = if dice.below(2) == 0 { Duration::ZERO } else { dice.life() };
                Self::Release { attempt, keep }
            }
            75..82 => Self::Inspect { key },
            82..86 => Self::PutForeign { key, life: dice.life() },
            86..89 => Self::Delete { key },
            89 => Self::Flush,
            _ => Self::Advance { time: dice.life() / 2 },
        }
    }

    /// The same attempt, or the same key, may come twice.
    fn batch(dice: &mut Dice, attempts: usize) -> Vec<(usize, Option<Duration>)> {
        let mut one = || {
            let attempt = attempts - 1 - dice.below(attempts.min(8));
            (attempt, (dice.below(3) > 0).then(|| dice.life()))
        };
        let first = one();
        let mut batch = vec![first];
        while one().1.is_some() && batch.len() < 5 {
            batch.push(one());
        }
        batch
    }
}

/// Both stores, the memory's time and the answers so far.
struct World {
    memory: Side,
    redis: Side,
    store: MemoryStore,
    admin: Admin,
    attempts: Vec<[VerbAttempt; 2]>,
    /// Dropped after what uses them.
    _fixtures: (Memory, Redis),
}

/// One backend, the runtime that it is asked from, and the latest token of each key.
struct Side {
    verbs: Verbs,
    runtime: Runtime,
    tokens: HashMap<usize, u64>,
}

/// What both sides said.
#[derive(Debug)]
struct Answers {
    memory: String,
    redis: String,
}

impl Answers {
    fn none() -> Self {
        Self { memory: String::new(), redis: String::new() }
    }

    fn differ(&self) -> bool {
        self.memory != self.redis
    }
}

/// What is under a key: who has it, by the attempt's number, and for how long.
type Lock = Option<(String, Duration)>;

impl World {
    fn start() -> Self {
        let fixtures = (Memory::start(), Redis::start());
        let (memory, redis) = (fixtures.0.url(), fixtures.1.url());
        Self {
            store: MemoryStore::open(memory.strip_prefix("memory://").unwrap()).unwrap(),
            admin: Admin::connect(&redis),
            memory: Side::open(&memory, Memory::runtime()),
            redis: Side::open(&redis, Redis::runtime()),
            attempts: Vec::new(),
            _fixtures: fixtures,
        }
    }

    fn perform(&mut self, step: &Step) -> Answers {
        match step {
            Step::Acquire { key, ttl } => {
                let attempt = || VerbAttempt::new(KEYS[*key], *ttl).unwrap();
                self.attempts.push([attempt(), attempt()]);
                self.acquire(self.attempts.len() - 1)
            }
            Step::Repeat { attempt } => self.acquire(*attempt),
            Step::Renew { batch } => self.both(&async |side, verbs| {
                let batch = batch.iter().map(|(at, ttl)| (self.attempts[*at][side].clone(), *ttl));
                verbs.renew(&batch.collect::<Vec<_>>()).await.unwrap()
            }),
            Step::Release { attempt, keep } => self.both(&async |side, verbs| {
                verbs.release(&self.attempts[*attempt][side], *keep).await.unwrap()
            }),
            Step::Inspect { key } => self.both(&async |side, verbs| {
                let held = verbs.inspect(KEYS[*key]).await.unwrap();
                held.map(|(owner, life)| (self.number(side, &owner), in_units(life.unwrap())))
            }),
            Step::PutForeign { key, life } => {
                self.in_memory(|store| store.put_foreign(KEYS[*key], *life));
                let millis = life.as_millis().to_string();
                self.admin.command::<()>(&["SET", KEYS[*key], "another's", "PX", &millis]);
                Answers::none()
            }
            Step::Delete { key } => {
                self.in_memory(|store| store.delete(KEYS[*key]));
                self.admin.del(KEYS[*key]);
                Answers::none()
            }
            Step::Flush => {
                self.flush();
                Answers::none()
            }
            Step::Advance { time } => {
                self.advance(*time);
                Answers::none()
            }
        }
    }

    /// Whether both grant. The tokens differ, and rise on either side.
    fn acquire(&mut self, attempt: usize) -> Answers {
        let pair = &self.attempts[attempt];
        let grants = [&mut self.memory, &mut self.redis].into_iter().zip(pair);
        let granted = grants.map(|(side, attempt)| side.acquire(attempt));
        let [memory, redis] = granted.collect::<Vec<_>>().try_into().unwrap();
        Answers { memory, redis }
    }

    fn both<T: Debug>(&self, verb: &impl AsyncFn(usize, &Verbs) -> T) -> Answers {
        let [memory, redis] = [(0, &self.memory), (1, &self.redis)].map(|(number, side)| {
            format!("{:?}", side.runtime.block_on(verb(number, &side.verbs)))
        });
        Answers { memory, redis }
    }

    fn in_memory<T>(&self, look: impl FnOnce(&MemoryStore) -> T) -> T {
        // Inside of the runtime whose clock is paused.
        self.memory.runtime.block_on(async { look(&self.store) })
    }

    fn flush(&self) {
        self.in_memory(MemoryStore::flush);
        self.admin.flush();
    }

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

    /// All locks, by the stores' own words, not by those of a verb.
    fn locks(&self) -> [Vec<Lock>; 2] {
        let lives: HashMap<_, _> = self.in_memory(MemoryStore::keyspace).into_iter().collect();
        let memory = |key: &str| {
            let life = *lives.get(key)?;
            let held = self.memory.runtime.block_on(self.memory.verbs.inspect(key));
            Some((self.number(0, &held.unwrap().unwrap().0), life))
        };
        let redis = |key: &str| {
            let owner = self.admin.get(key)?;
            let life = u64::try_from(self.admin.pttl(key)).expect("a lock has an end");
            Some((self.number(1, &owner), Duration::from_millis(life)))
        };
        let names = self.admin.keys("*");
        assert!(names.iter().all(|name| KEYS.contains(&&**name) || name.starts_with("lockable:")));
        [KEYS.map(memory).into(), KEYS.map(redis).into()]
    }

    /// The number of the attempt that wrote this, with the mark of a lock that is only kept.
    fn number(&self, side: usize, owner: &str) -> String {
        let (mark, owner) = owner.strip_prefix('~').map_or(("", owner), |owner| ("~", owner));
        match self.attempts.iter().position(|pair| pair[side].owner() == owner) {
            Some(number) => format!("{mark}{number}"),
            None => format!("{mark}another"),
        }
    }
}

impl Side {
    fn open(url: &str, runtime: Runtime) -> Self {
        Self { verbs: Verbs::open(url).unwrap(), runtime, tokens: HashMap::new() }
    }

    fn acquire(&mut self, attempt: &VerbAttempt) -> String {
        let token = self.runtime.block_on(self.verbs.acquire(attempt)).unwrap();
        let key = KEYS.iter().position(|key| *key == attempt.key()).unwrap();
        if let Some(token) = token {
            let former = self.tokens.insert(key, token);
            assert!(former < Some(token), "{token} after {former:?}");
        }
        if token.is_some() { "granted" } else { "contended" }.to_owned()
    }
}

/// Whether the same attempts have the same locks, for the same number of units.
fn alike([memory, redis]: &[Vec<Lock>; 2]) -> bool {
    let in_units = |locks: &[Lock]| -> Vec<_> {
        locks.iter().map(|lock| lock.clone().map(|(who, life)| (who, in_units(life)))).collect()
    };
    in_units(memory) == in_units(redis)
}

fn in_units(life: Duration) -> u128 {
    (life + UNIT / 2).as_millis() / UNIT.as_millis()
}

/// Reproducible numbers: Marsaglia's xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        for (left, shift) in [(true, 13), (false, 7), (true, 17)] {
            self.0 ^= if left { self.0 << shift } else { self.0 >> shift };
        }
        let limit = u64::try_from(limit).unwrap();
        usize::try_from((self.0 >> 16) % limit).unwrap()
    }

    /// Two, four, six or eight units.
    fn life(&mut self) -> Duration {
        let count = 1 + self.below(4);
        2 * UNIT * u32::try_from(count).unwrap()
    }
}
