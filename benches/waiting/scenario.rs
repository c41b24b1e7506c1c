//! What the contenders are put through.

use std::time::Duration;

/// How many want what, for how long.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) processes: usize,
    /// In each process.
    pub(crate) waiters: usize,
    pub(crate) section: Duration,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A key for each waiter.
    OwnKeys,
    /// All want one key, again and again.
    OneKey,
    /// All want one key, once.
    Burst,
}

impl Scenario {
    /// One key and waiters of one process, which do nothing inside.
    pub(crate) fn one_process(waiters: usize) -> Self {
        new("", (1, waiters), 0, Kind::OneKey)
    }

    /// One waiter with a key of its own.
    pub(crate) fn alone() -> Self {
        new("", (1, 1), 0, Kind::OwnKeys)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.kind != Kind::OwnKeys
    }
}

pub(crate) fn all() -> [Scenario; 9] {
    [
        new("uncontended, 1 task", (1, 1), 0, Kind::OwnKeys),
        new("uncontended, 64 tasks with their own keys", (1, 64), 0, Kind::OwnKeys),
        new(ONE_32, (1, 32), 0, Kind::OneKey),
        new("1 process x 32 waiters, 1 ms", (1, 32), 1, Kind::OneKey),
        new("1 process x 256 waiters, 0 ms", (1, 256), 0, Kind::OneKey),
        new("1 process x 256 waiters, 1 ms", (1, 256), 1, Kind::OneKey),
        new(FOUR, (4, 64), 0, Kind::OneKey),
        new("4 processes x 64 waiters, 1 ms", (4, 64), 1, Kind::OneKey),
        new(BURST, (4, 64), 1, Kind::Burst),
    ]
}

fn new(name: &'static str, (processes, waiters): (usize, usize), ms: u64, kind: Kind) -> Scenario {
    Scenario { name, processes, waiters, section: Duration::from_millis(ms), kind }
}

pub(crate) const ONE_32: &str = "1 process x 32 waiters, 0 ms";
pub(crate) const FOUR: &str = "4 processes x 64 waiters, 0 ms";
pub(crate) const BURST: &str = "burst: 4 processes x 64 waiters, each once, 1 ms";
