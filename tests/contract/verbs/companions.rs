//! What there is beside a lock in Redis and not in memory, and what a step may make of it.

use std::time::Duration;

use lockable_runtime::__internals::fence_counter;

use super::server::{Found, Now};
use super::side::Asked;
use super::state::Place;
use super::step::What;

/// The fence counter of a lock and the life of its queue. Each ends at a millisecond since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Companions {
    pub(super) fence: Option<Fence>,
    pub(super) queue_ends: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    pub(super) value: u64,
    ends: u64,
}

/// As many tokens as a grant reserves, unless the counter is ahead of the time.
const TURN: u64 = 17;

/// When something ends that has no end.
const NEVER: u64 = u64::MAX;

/// What a step does to a fence counter.
#[derive(Clone, Copy)]
pub(super) enum Counting {
    Nothing,
    // For one try, with the life of a counter that is seeded; the first one of its process has to seed.
    One { life: u64, is_first: bool },
    // For a try for another lock, which may seed this counter too if it is behind the time.
    Beside { life: u64 },
    // For the turn of the attempt that asks, if it comes, with the life of a counter that is granted for such a lease.
    Turn { life: u64 },
}

impl Companions {
    /// Takes what belongs to one key. Text that is no number is no count.
    pub(super) fn take(key: &str, found: &mut Found, now: Now) -> (Self, Vec<String>) {
        let ends = |life: i64| u64::try_from(life).map_or(NEVER, |life| now.millis + life);
        let fence = found.remove(&fence(key)).map(|(life, text)| Fence {
            value: text.first().and_then(|text| text.parse().ok()).unwrap_or_default(),
            ends: ends(life),
        });
        let queue = found.remove(&queue(key));
        let queue_ends = queue.as_ref().map(|(life, _)| ends(*life));
        (Self { fence, queue_ends }, queue.map_or_else(Vec::new, |(_, entries)| entries))
    }

    /// What is left of it when time has passed.
    pub(super) fn at(self, now: Now) -> Self {
        Self { fence: self.fence.filter(|fence| fence.ends >= now.millis), ..self }
    }

    /// What the fence counter may be after the step.
    pub(super) fn fences(self, counting: Counting, now: Now) -> Vec<Option<Fence>> {
        let former = self.fence.map_or(0, |fence| fence.value);
        match counting {
            Counting::Nothing => vec![self.fence],
            Counting::One { life, is_first } => {
                let seeded = (former + 1).max(now.micros);
                let ahead = (seeded - now.micros).div_ceil(1_000);
                // A longer life stays.
                let longer = self.fence.map(|fence| fence.ends).filter(|ends| *ends < NEVER);
                let ends = (now.millis + life + ahead).max(longer.unwrap_or_default());
                let seeded = Fence { value: seeded, ends };
                let counted = self.fence.map(|fence| Fence { value: former + 1, ..fence });
                // A counter that was lost is seeded again.
                let is_trusted = |fence: &Fence| !is_first && fence.value > now.micros / 2;
                [Some(seeded)].into_iter().chain(counted.filter(is_trusted).map(Some)).collect()
            }
            Counting::Beside { .. } if former >= now.micros => vec![self.fence],
            Counting::Beside { life } => {
                let longer = self.fence.map(|fence| fence.ends).filter(|ends| *ends < NEVER);
                let ends = (now.millis + life).max(longer.unwrap_or_default());
                vec![self.fence, Some(Fence { value: now.micros, ends })]
            }
            Counting::Turn { life } => {
                let turn = Some(Fence::turn(self.fence, now));
                let longer =
                    |fence: Fence| Fence { ends: fence.ends.max(now.millis + life), ..fence };
                [self.fence, turn].map(|fence| fence.map(longer)).into()
            }
        }
    }

    /// When the queue ends after the step.
    pub(super) fn queue_ends(self, joined: Option<Joined>, after: &Place, now: Now) -> Option<u64> {
        if after.queue.is_empty() {
            return None;
        }
        let Some(Joined { life, is_new }) = joined else { return self.queue_ends };
        let ends = now.millis + life;
        Some(if is_new { ends } else { self.queue_ends.unwrap_or_default().max(ends) })
    }
}

impl Fence {
    /// Whether it is this one, unless the time that it was counted up at was a little later.
    pub(super) fn may_be(self, expected: Self, now: Now) -> bool {
        let later = expected.value..=expected.value + now.blur;
        // What is ahead of a later time is less ahead.
        let sooner = expected.ends - now.blur.min(1)..=expected.ends;
        later.contains(&self.value) && sooner.contains(&self.ends)
    }

    /// Counted up by what a turn needs, or by a single token.
    fn turn(former: Option<Self>, now: Now) -> Self {
        const LIFE: u64 = 600_000;
        let (value, ends) = former.map_or((0, NEVER), |fence| (fence.value, fence.ends));
        let is_old = value + LIFE * 1_000 < now.micros;
        let ends = if is_old && ends == NEVER { now.millis + LIFE } else { ends };
        let value = if value < now.micros { now.micros + TURN - 1 } else { value + 1 };
        Self { value, ends }
    }
}

/// How an attempt came into a queue, or asked again there: for how long the queue is to live, and whether
/// it is another queue than before.
#[derive(Clone, Copy)]
pub(super) struct Joined {
    life: u64,
    is_new: bool,
}

impl Joined {
    /// Of the attempt that this step queued, where the key was like this before and is like that after it.
    pub(super) fn by(what: &What, asked: &[Asked], before: &Place, after: &Place) -> Option<Self> {
        match what {
            // Those that are passed over are gone when it comes.
            What::Enqueue { .. } | What::Ask { .. } => {
                let attempt = what.asks(asked)?;
                let is_queued = after.queue.contains(&attempt.to_string());
                let is_left = |who: &String| after.queue.contains(who);
                let is_new = !before.queue.iter().any(is_left);
                is_queued.then_some(Self { life: queue_life(asked[attempt].ttl), is_new })
            }
            // It is queued before the others are passed over, but for the first, unless it has the lock. A queue
            // that others are in does not live longer by that.
            What::ReleaseTo { attempt, next, keep } => {
                let next = next.number(asked);
                let is_holder =
                    |who: usize| before.lock.as_ref().is_some_and(|lock| lock.0 == who.to_string());
                let hands_off = is_holder(*attempt) && keep.is_zero();
                let is_new = before.queue.len() == usize::from(hands_off);
                let joins = is_new || before.queue.is_empty();
                (joins && !is_holder(next))
                    .then_some(Self { life: queue_life(asked[next].ttl), is_new: true })
            }
            _ => None,
        }
    }
}

/// Three leases, and half a minute at least.
fn queue_life(ttl: Duration) -> u64 {
    u64::try_from(3 * ttl.as_millis()).unwrap().max(30_000)
}

/// Ten leases, in whole ten minutes.
pub(super) fn fence_life(ttl: Duration) -> u64 {
    u64::try_from(10 * ttl.as_millis()).unwrap().next_multiple_of(600_000)
}

/// The name of the queue of a lock.
pub(super) fn queue(key: &str) -> String {
    let tagged = if key.contains('{') { format!(":{key}") } else { format!("{{{key}}}") };
    format!("lockable:queue:{tagged}")
}

/// The name of the fence counter that counts the grants of a lock.
pub(super) fn fence(key: &str) -> String {
    fence_counter(key).unwrap()
}
