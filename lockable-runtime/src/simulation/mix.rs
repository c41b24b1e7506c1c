//! What may go wrong in one seed. Each has a mix of its own, because faults hide each other: where all
//! connections break all the time, no call waits for long.

use std::time::Duration;

use super::dice::Dice;

/// Which rules a seed has to keep, and so what may go wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Messages are late and calls are cancelled; nothing fails. So everything has to end well.
    Mild,
    /// All but the loss of data: at most one call has the lock.
    Wild,
    /// The server also loses locks, so two calls may believe in one; their fencing tokens differ.
    Losing,
}

impl Kind {
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            7 => Self::Losing,
            odd if odd % 2 == 1 => Self::Wild,
            _ => Self::Mild,
        }
    }
}

/// A fault that strikes one process, or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connections break; what was sent may land all the same.
    Cut,
    /// The connections bring no answer any more, and do not break.
    Silence,
    /// The process stops, as by `SIGSTOP`, and continues later.
    Stop,
    /// Its calls are not polled for a while, and its background is.
    Block,
    /// The process ends at once, as by `SIGKILL`, and another one starts.
    Kill,
    /// The subscription breaks.
    Unsubscribe,
    /// The subscription brings no message for a while, and breaks then.
    Deafen,
    /// The server answers nothing for a while.
    Stall,
    /// The server's clock is set back.
    SetBack,
    /// The server restarts without its data.
    Flush,
    /// A lock is deleted.
    Delete,
    /// An operator asks the holder of a lock to stop, which is no fault of anything.
    Revoke,
}

impl Fault {
    /// As it is counted.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cut => "cuts",
            Self::Silence => "silences",
            Self::Stop => "stops",
            Self::Block => "blocked runtimes",
            Self::Kill => "kills",
            Self::Unsubscribe => "broken subscriptions",
            Self::Deafen => "deaf subscriptions",
            Self::Stall => "stalls of the server",
            Self::SetBack => "clocks set back",
            Self::Flush => "flushes",
            Self::Delete => "deletions",
            Self::Revoke => "revocations",
        }
    }
}

/// How probable each fault is in one step of a seed, in thousandths, at most.
const FAULTS: [(Fault, u64); 12] = [
    (Fault::Cut, 20),
    (Fault::Silence, 12),
    (Fault::Stop, 20),
    (Fault::Block, 12),
    (Fault::Kill, 8),
    (Fault::Unsubscribe, 20),
    (Fault::Deafen, 16),
    (Fault::Stall, 8),
    (Fault::SetBack, 8),
    (Fault::Flush, 12),
    (Fault::Delete, 12),
    (Fault::Revoke, 60),
];

/// How probable things are, in thousandths, and how long they may take, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    pub(super) kind: Kind,
    pub(super) faults: Vec<(Fault, u64)>,
    /// What is under way takes long, at most `longest_way`, in these directions.
    pub(super) slow: u64,
    pub(super) longest_way: u64,
    pub(super) slow_ways: Vec<Way>,
    /// The same, for longer than any deadline.
    pub(super) very_slow: u64,
    /// A message of a grant takes long, at most `longest_message`.
    pub(super) late_message: u64,
    pub(super) longest_message: u64,
    /// A call is dropped before its end.
    pub(super) cancel: u64,
    /// A body waits for long.
    pub(super) long_body: u64,
    /// A call wants one of so many permits, or all of them; several locks; or a lock that it leaves done.
    pub(super) wants_permit: u64,
    pub(super) permits: usize,
    pub(super) wants_all: u64,
    pub(super) wants_several: u64,
    pub(super) wants_once: u64,
    /// A worker rests for long between two calls.
    pub(super) rest: u64,
    /// How many workers each process has.
    pub(super) workers: u64,
    /// Whether there are many, and their bodies are short: then turns are passed on often.
    pub(super) is_crowded: bool,
    /// For how long a call waits for an answer, in milliseconds.
    pub(super) command_deadline: u64,
}

/// A direction on one of the two connections of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) lane: Lane,
    pub(super) is_reply: bool,
}

const WAYS: [Way; 4] = [
    Way { lane: Lane::Caller, is_reply: false },
    Way { lane: Lane::Caller, is_reply: true },
    Way { lane: Lane::Background, is_reply: false },
    Way { lane: Lane::Background, is_reply: true },
];

/// Which of the two connections of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// That of the callers' runtime.
    Caller,
    /// That of the background, which renews, waits in queues, and releases what no caller does.
    Background,
}

impl Mix {
    pub(super) fn draw(kind: Kind, dice: &mut Dice) -> Self {
        let is_mild = kind == Kind::Mild;
        let may_strike = |fault: &Fault| match fault {
            Fault::Flush | Fault::Delete => kind == Kind::Losing,
            Fault::Revoke => true,
            _ => !is_mild,
        };
        let struck = FAULTS.into_iter().filter(|(fault, _)| may_strike(fault));
        let is_crowded = dice.chance(20);
        let is_slow = |dice: &mut Dice| dice.chance(700);
        Self {
            kind,
            faults: struck.map(|(fault, most)| (fault, up_to(dice, most))).collect(),
            slow: if is_mild { 100 + up_to(dice, 400) } else { up_to(dice, 60) },
            // Below a third of what a lease of a second leaves for its renewal.
            longest_way: if is_mild { dice.one_of(&[100, 250]) } else { 300 },
            slow_ways: WAYS.into_iter().filter(|_| is_slow(dice)).collect(),
            very_slow: if is_mild { 0 } else { up_to(dice, 8) },
            late_message: up_to(dice, 200),
            longest_message: dice.one_of(&[300, 1_500]),
            cancel: up_to(dice, 300),
            long_body: 50 + up_to(dice, 350),
            wants_permit: up_to(dice, 1_000),
            permits: dice.one_of(&[2, 3]),
            wants_all: up_to(dice, 300),
            wants_several: up_to(dice, 500),
            wants_once: up_to(dice, 300),
            rest: up_to(dice, 1_000),
            workers: if is_crowded { 24 } else { 1 + up_to(dice, 3) },
            is_crowded,
            command_deadline: if is_mild { 1_000 } else { dice.one_of(&[1_000, 300]) },
        }
    }

    /// How long a lock may be taken without a call that uses it, where nothing fails.
    ///
    /// For the second of a grant whose call has gone, and the delays around that; or for less than that
    /// second, where a grant is heard of, and claimed or released, before it is over.
    pub(super) fn longest_idle(&self) -> Duration {
        let is_punctual = self.longest_message + 4 * self.longest_way < 800;
        Duration::from_millis(if is_punctual { 900 } else { 2_500 })
    }

    /// Whether calls hold locks, and do not use them, while they wait for others.
    pub(super) fn may_hold_idle(&self) -> bool {
        self.wants_several > 0 || (self.wants_permit > 0 && self.wants_all > 0)
    }

    pub(super) fn is_mild(&self) -> bool {
        self.kind == Kind::Mild
    }
}

/// Half of what may happen does not happen at all in a seed.
fn up_to(dice: &mut Dice, most: u64) -> u64 {
    if dice.chance(500) { 0 } else { 1 + dice.below(most) }
}
