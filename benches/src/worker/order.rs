//! The orders of a worker.

use std::time::Duration;

/// A line of standard input.
pub(super) enum Order {
    Start(Terms),
    Pairs(PairsTerms),
    End,
}

/// What happens in a round.
pub(super) struct Terms {
    /// On the monotonic clock, in nanoseconds.
    pub(super) at: u64,
    pub(super) key: String,
    pub(super) waiters: usize,
    pub(super) section: Duration,
    /// How many sections a waiter wants; 0 for no limit.
    pub(super) limit: usize,
}

/// What happens in a round of pairs.
pub(super) struct PairsTerms {
    pub(super) key: String,
    pub(super) tasks: usize,
    /// Of each task.
    pub(super) most: usize,
    pub(super) time: Duration,
}

impl Order {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["end"] => Some(Self::End),
            ["start", at, key, waiters, section, limit] => Some(Self::Start(Terms {
                at: at.parse().ok()?,
                key: key.to_owned(),
                waiters: waiters.parse().ok()?,
                section: Duration::from_micros(section.parse().ok()?),
                limit: limit.parse().ok()?,
            })),
            ["pairs", key, tasks, most, time] => Some(Self::Pairs(PairsTerms {
                key: key.to_owned(),
                tasks: tasks.parse().ok()?,
                most: most.parse().ok()?,
                time: Duration::from_millis(time.parse().ok()?),
            })),
            _ => None,
        }
    }
}
