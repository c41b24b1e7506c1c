use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use crate::core::backend::{Attempt, Events, Reserved};
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::{Held, LockValue, Origin, OwnerToken};
use crate::core::types::permit::PermitsKey;
use crate::core::types::slot::Slot;

/// As many fencing tokens as a turn can need.
pub(crate) const TURN: u64 = Reserved::PASSES + 1;

/// A lock that stays taken after its release does so for this much longer while calls wait for it: it is handed off to
/// the first that queries within that time, so no newcomer finds it free.
const GRACE: Duration = Duration::from_secs(1);

const SMALL: usize = 64;

pub(crate) struct State {
    pub(crate) places: HashMap<LockKey, StoredKey>,
    /// The queues of permits, by permits' key.
    pub(crate) queues: HashMap<LockKey, VecDeque<Arc<Attempt>>>,
    pub(crate) counting: Counting,
    /// They get what operators send, and the wake-ups for owner tokens of their origins.
    pub(crate) lockers: Vec<(Origin, Weak<dyn Events>)>,
    /// The number of all places at which unused ones are swept.
    sweep_at: usize,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            places: HashMap::new(),
            queues: HashMap::new(),
            counting: Counting::start(),
            lockers: Vec::new(),
            sweep_at: SMALL,
        }
    }

    /// Forgets all data. The calendar continues, as a server's clock does.
    #[cfg(any(lockable_internals, test))]
    pub(crate) fn flush(&mut self) {
        self.places.clear();
        self.queues.clear();
        self.counting.fences.clear();
    }

    /// The waiters for a lock, in their order; those for any permit, if it is one.
    pub(crate) fn queue(&self, key: &LockKey) -> impl Iterator<Item = &Arc<Attempt>> {
        let queue = match PermitsKey::of_permit(key) {
            Some(permits_key) => self.queues.get(permits_key.key()),
            None => self.places.get(key).map(|place| &place.queue),
        };
        queue.into_iter().flatten()
    }

    /// Performs a change of what is stored about a key. A permit has the queue of all meanwhile.
    pub(crate) fn with_queue<T>(
        &mut self,
        key: &LockKey,
        change: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let Some(permits_key) = PermitsKey::of_permit(key) else { return change(self) };
        if let Some(queue) = self.queues.remove(permits_key.key()) {
            self.places.entry(key.clone()).or_default().queue = queue;
        }
        let result = change(self);
        let queue = self.places.get_mut(key).map(|place| mem::take(&mut place.queue));
        if let Some(queue) = queue.filter(|queue| !queue.is_empty()) {
            self.queues.insert(permits_key.key().clone(), queue);
        }
        result
    }

    pub(crate) fn sweep_when_grown(&mut self, now: Moment) {
        if self.places.len() >= self.sweep_at {
            self.places.retain(|_, place| place.is_used(now));
            self.sweep_at = SMALL.max(2 * self.places.len());
        }
    }
}

#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct StoredKey {
    pub(crate) lock: Option<Lock>,
    pub(crate) queue: VecDeque<Arc<Attempt>>,
}

impl StoredKey {
    fn is_used(&self, now: Moment) -> bool {
        now < self.expires() || !self.queue.is_empty()
    }

    /// When another attempt may have the lock.
    pub(crate) fn expires(&self) -> Moment {
        match &self.lock {
            None => Moment::default(),
            Some(lock) if lock.is_released && !self.queue.is_empty() => lock.ends.after(GRACE),
            Some(lock) => lock.ends,
        }
    }

    pub(crate) fn held(&self, now: Moment) -> Option<Held> {
        let lock = self.lock.as_ref().filter(|_| now < self.expires())?;
        let mark = match lock.is_released {
            false => "",
            true if self.queue.is_empty() => "~",
            true => "=",
        };
        let owner = [mark, lock.owner.as_ref()].concat();
        let owner = LockValue::new(owner.into_bytes());
        Some(Held { owner, remaining: Some(lock.ends.since(now)) })
    }

    pub(crate) fn join(&mut self, attempt: &Arc<Attempt>) {
        if !self.queue.iter().any(|other| other.owner == attempt.owner) {
            self.queue.push_back(Arc::clone(attempt));
        }
    }

    pub(crate) fn withdraw(&mut self, attempt: &Attempt) {
        self.queue.retain(|other| other.owner != attempt.owner);
    }
}

#[cfg_attr(test, derive(Clone))]
pub(crate) struct Lock {
    pub(crate) owner: OwnerToken,
    pub(crate) ends: Moment,
    pub(crate) is_released: bool,
}

impl Lock {
    pub(crate) fn held(owner: &OwnerToken, ends: Moment) -> Self {
        Self { owner: owner.clone(), ends, is_released: false }
    }

    pub(crate) fn is_held_by(&self, attempt: &Attempt) -> bool {
        self.owner == attempt.owner && !self.is_released
    }

    /// Lets it last as long as if it were granted now, and never shorter.
    pub(crate) fn prolong(&mut self, ttl: Ttl, now: Moment) {
        self.ends = self.ends.max(now.after(ttl.duration()));
    }
}

#[cfg_attr(test, derive(Clone))]
pub(crate) struct Counting {
    pub(crate) calendar: Calendar,
    pub(crate) fences: HashMap<Slot, Fence>,
}

impl Counting {
    fn start() -> Self {
        Self { calendar: Calendar::start(), fences: HashMap::new() }
    }

    /// Gives away this many fencing tokens of the attempt's slot, and returns the first of them.
    pub(crate) fn reserve(&mut self, attempt: &Attempt, count: u64, now: Moment) -> u64 {
        let seed = self.calendar.read(now);
        let fence = self.fences.entry(attempt.slot).or_default();
        fence.reserve(count, seed, attempt.ttl, now)
    }
}

#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Fence {
    pub(crate) value: u64,
    pub(crate) expires: Moment,
}

impl Fence {
    fn reserve(&mut self, count: u64, seed: u64, ttl: Ttl, now: Moment) -> u64 {
        if self.expires <= now {
            self.value = seed;
        }
        self.expires = self.expires.max(now.after(ttl.fence_life()));
        let first = self.value.saturating_add(1);
        self.value = self.value.saturating_add(count);
        first
    }
}

/// The calendar that fence counters start from. It survives the loss of all data, as a server's does.
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Calendar {
    epoch: u64,
    born: Moment,
    pub(crate) latest: u64,
}

impl Calendar {
    fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self { epoch: since_epoch.map_or(0, micros), born: tokio_time(), latest: 0 }
    }

    /// Microseconds since 1970. More pass between two grants than a grant reserves tokens, even while tokio's clock is
    /// paused: so a fence counter that was lost starts above the old one.
    fn read(&mut self, now: Moment) -> u64 {
        let time = self.epoch.saturating_add(micros(now.since(self.born)));
        self.latest = time.max(self.latest.saturating_add(TURN + 1));
        self.latest
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
