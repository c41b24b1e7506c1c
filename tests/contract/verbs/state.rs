//! All that is in a store, in words that are the same for both.

use std::time::Duration;

use super::KEYS;

/// What is under each key, and names that belong to no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) places: [Place; KEYS],
    pub(super) others: Vec<String>,
}

/// One key: who has the lock and for how long, and who waits for it, by the attempts' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lock: Option<(String, Life)>,
    pub(super) queue: Vec<String>,
}

/// For how long something still lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Millis(u64),
    Endless,
}

impl Life {
    /// As a server encodes it.
    pub(super) fn from_pttl(pttl: i64) -> Self {
        u64::try_from(pttl).map_or(Self::Endless, Self::Millis)
    }

    pub(super) fn millis(self) -> Option<u64> {
        match self {
            Self::Millis(millis) => Some(millis),
            Self::Endless => None,
        }
    }
}

/// In memory everything has an end, which may be centuries away.
impl From<Duration> for Life {
    fn from(life: Duration) -> Self {
        let millis = u64::try_from(life.as_millis()).unwrap();
        if life > AGES { Self::Endless } else { Self::Millis(millis) }
    }
}

/// A hundred years.
const AGES: Duration = Duration::from_secs(100 * 365 * 86_400);

impl State {
    /// The attempts that have a lock, or have left it taken.
    pub(super) fn holders(&self) -> Vec<usize> {
        self.locks()
            .filter_map(|(who, _)| who.trim_start_matches(['~', '=']).parse().ok())
            .collect()
    }

    pub(super) fn queued(&self) -> Vec<usize> {
        let queues = self.places.iter().flat_map(|place| &place.queue);
        queues.filter_map(|who| who.parse().ok()).collect()
    }

    /// The time that passes, or a millisecond more where a lock would just end: it is over in memory then, and not
    /// yet in Redis.
    pub(super) fn beside_ends(&self, time: Duration) -> Duration {
        let (ends, mut millis) = (self.ends(), u64::try_from(time.as_millis()).unwrap());
        while millis > 0 && ends.contains(&millis) {
            millis += 1;
        }
        Duration::from_millis(millis)
    }

    /// In how many milliseconds each lock ends that does.
    pub(super) fn ends(&self) -> Vec<u64> {
        self.locks().filter_map(|(_, life)| life.millis()).collect()
    }

    /// In how many milliseconds the first lock ends that is reserved for its waiters.
    pub(super) fn reserved(&self) -> Option<u64> {
        let reserved = self.locks().filter(|(who, _)| who.starts_with('='));
        reserved.filter_map(|(_, life)| life.millis()).min()
    }

    fn locks(&self) -> impl Iterator<Item = &(String, Life)> {
        self.places.iter().filter_map(|place| place.lock.as_ref())
    }
}
