//! All that is in a store, in words that are the same for both.

use std::time::Duration;

use super::{GRANTED, UNIT};

/// What is under each key, and names that have no end or belong to no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) places: Vec<Place>,
    pub(super) others: Vec<String>,
}

/// One key: who has the lock and for how long, and who waits for it, by the attempts' numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lock: Option<(String, Life)>,
    pub(super) queue: Vec<String>,
}

/// How long a lock lives, as far as that is the same in both stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// No longer than one that was handed off.
    Short,
    Units(u128),
}

impl From<Duration> for Life {
    fn from(life: Duration) -> Self {
        if life <= GRANTED {
            return Self::Short;
        }
        Self::Units((life + UNIT / 2).as_millis() / UNIT.as_millis())
    }
}

impl State {
    /// The attempts that have a lock.
    pub(super) fn holders(&self) -> Vec<usize> {
        self.locks().filter_map(|(who, _)| who.parse().ok()).collect()
    }

    /// The attempts that have a lock for a short time.
    pub(super) fn handed_off(&self) -> Vec<usize> {
        let short = self.locks().filter(|(_, life)| *life == Life::Short);
        short.filter_map(|(who, _)| who.parse().ok()).collect()
    }

    pub(super) fn queued(&self) -> Vec<usize> {
        let queues = self.places.iter().flat_map(|place| &place.queue);
        queues.filter_map(|who| who.parse().ok()).collect()
    }

    fn locks(&self) -> impl Iterator<Item = &(String, Life)> {
        self.places.iter().filter_map(|place| place.lock.as_ref())
    }
}
