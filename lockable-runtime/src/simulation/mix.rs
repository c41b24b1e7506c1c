//! What may go wrong in one seed. Each has a mix of its own, because faults hide each other: where all
//! connections break all the time, no call waits for long.

use std::time::Duration;

use super::dice::Dice;
use super::slot_owners::Topology;

/// Which rules a seed has to keep, and so what may go wrong in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Messages are late and calls are cancelled; nothing fails. So everything has to end well.
    Mild,
    /// As [`Mild`](Self::Mild), but servers also refuse requests for a moment; that loses nothing.
    Refusing,
    /// As [`Mild`](Self::Mild), but locks are also deleted or taken away; their holders hear of that.
    Deleting,
    /// All but the loss of data: at most one call has the lock.
    Wild,
    /// The server also loses locks, so two calls may believe in one; their fencing tokens differ.
    Losing,
}

impl Kind {
    /// Whether processes, connections and servers fail.
    pub(super) fn has_failures(self) -> bool {
        matches!(self, Self::Wild | Self::Losing)
    }
}

/// What a seed is about, by its number.
pub(super) fn class(seed: u64) -> (Kind, Topology) {
    match seed % 16 {
        0 | 2 | 4 | 6 => (Kind::Mild, Topology::One),
        1 | 3 => (Kind::Wild, Topology::One),
        7 => (Kind::Losing, Topology::One),
        8 => (Kind::Refusing, Topology::One),
        10 => (Kind::Deleting, Topology::One),
        5 => (Kind::Mild, Topology::Failover),
        9 | 13 => (Kind::Wild, Topology::Failover),
        12 => (Kind::Mild, Topology::Slots),
        11 => (Kind::Wild, Topology::Slots),
        14 => (Kind::Losing, Topology::Slots),
        _ => (Kind::Losing, Topology::Failover),
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
    /// Someone publishes a wake-up that no release has sent.
    Forge,
    /// The server restarts without its data.
    Flush,
    /// A lock is deleted.
    Delete,
    /// A server refuses requests for a while.
    Refuse,
    /// The replica takes over, without the last writes.
    FailOver,
    /// A slot moves to the other server.
    Move,
    /// An operator asks the holder of a lock to stop, which is no fault of anything.
    Revoke,
    /// An operator takes a lock away.
    Force,
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
            Self::Forge => "forged messages",
            Self::Flush => "flushes",
            Self::Delete => "deletions",
            Self::Refuse => "refusals",
            Self::FailOver => "failovers",
            Self::Move => "moves of slots",
            Self::Revoke => "revocations",
            Self::Force => "locks forced",
        }
    }
}

/// How probable each fault is in one step of a seed, in thousandths, at most.
const FAULTS: [(Fault, u64); 16] = [
    (Fault::Cut, 20),
    (Fault::Silence, 12),
    (Fault::Stop, 20),
    (Fault::Block, 12),
    (Fault::Kill, 8),
    (Fault::Unsubscribe, 20),
    (Fault::Deafen, 16),
    (Fault::Stall, 8),
    (Fault::Forge, 60),
    (Fault::Flush, 12),
    (Fault::Delete, 12),
    (Fault::Refuse, 12),
    (Fault::FailOver, 12),
    (Fault::Move, 20),
    (Fault::Revoke, 60),
    (Fault::Force, 12),
];

/// How probable things are, in thousandths, and how long they may take, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    pub(super) kind: Kind,
    pub(super) topology: Topology,
    pub(super) faults: Vec<(Fault, u64)>,
    /// What is under way takes long, at most `longest_way`, in these directions.
    pub(super) slow: u64,
    pub(super) longest_way: u64,
    pub(super) slow_ways: Vec<Way>,
    /// What is under way takes longer than any deadline, in any direction.
    pub(super) very_slow: u64,
    /// A wake-up takes long, at most `longest_message`.
    pub(super) late_message: u64,
    pub(super) longest_message: u64,
    /// A wake-up arrives twice.
    pub(super) doubled_message: u64,
    /// A message of an operator is lost.
    pub(super) lost_message: u64,
    /// A call is dropped before its end.
    pub(super) cancel: u64,
    /// A body waits for long.
    pub(super) long_body: u64,
    /// A call wants one of several permits, or all of them; several locks; or a lock that it leaves done.
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
    /// A call is a campaign; a guard that would be released becomes a ticket; a call redeems a ticket, where there is one.
    pub(super) leads: u64,
    pub(super) passes: u64,
    pub(super) redeems: u64,
}

/// A direction on one of the two connections of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) connection_kind: ConnectionKind,
    pub(super) is_reply: bool,
}

const WAYS: [Way; 4] = [
    Way { connection_kind: ConnectionKind::Caller, is_reply: false },
    Way { connection_kind: ConnectionKind::Caller, is_reply: true },
    Way { connection_kind: ConnectionKind::Background, is_reply: false },
    Way { connection_kind: ConnectionKind::Background, is_reply: true },
];

/// Which of the two connections of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    /// That of the callers' runtime.
    Caller,
    /// That of the background, which renews, waits in queues, and releases what no caller does.
    Background,
}

impl Mix {
    /// What came later is drawn from `late_dice`.
    pub(super) fn draw(
        (kind, topology): (Kind, Topology),
        dice: &mut Dice,
        late_dice: &mut Dice,
    ) -> Self {
        let is_calm = !kind.has_failures();
        let may_strike = |fault: &Fault| match fault {
            Fault::Flush => kind == Kind::Losing,
            Fault::Delete | Fault::Force => matches!(kind, Kind::Losing | Kind::Deleting),
            Fault::Refuse => !is_calm || kind == Kind::Refusing,
            Fault::FailOver => topology == Topology::Failover,
            Fault::Move => topology == Topology::Slots,
            // They lose nothing.
            Fault::Revoke | Fault::Forge => true,
            _ => !is_calm,
        };
        let struck = FAULTS.into_iter().filter(|(fault, _)| may_strike(fault));
        let chance = |dice: &mut Dice, fault, most| {
            let always =
                [Fault::FailOver, Fault::Move].contains(&fault) || is_calm && kind != Kind::Mild;
            let chance = if always { 1 + dice.below(most) } else { up_to(dice, most) };
            (fault, chance)
        };
        let is_crowded = dice.chance(20);
        let is_slow = |dice: &mut Dice| dice.chance(700);
        Self {
            kind,
            topology,
            faults: struck.map(|(fault, most)| chance(dice, fault, most)).collect(),
            slow: if is_calm { 100 + up_to(dice, 400) } else { up_to(dice, 60) },
            // Below a third of what a lease of a second leaves for its renewal.
            longest_way: if is_calm { dice.one_of(&[100, 250]) } else { 300 },
            slow_ways: WAYS.into_iter().filter(|_| is_slow(dice)).collect(),
            very_slow: if is_calm { 0 } else { up_to(dice, 8) },
            late_message: up_to(dice, 200),
            longest_message: dice.one_of(&[300, 1_500]),
            doubled_message: up_to(dice, 300),
            lost_message: if is_calm { 0 } else { up_to(dice, 500) },
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
            command_deadline: if is_calm { 1_000 } else { dice.one_of(&[1_000, 300]) },
            leads: up_to(late_dice, 60),
            passes: up_to(late_dice, 600),
            redeems: 50 + late_dice.below(450),
        }
    }

    /// How long a lock may be taken without a call that uses it, where nothing fails.
    ///
    /// For the second that it is kept for a call that has gone, and the delays around that; or for less than that
    /// second, where the wake-up arrives, and the call asks or the turn is given back, before it is over.
    pub(super) fn longest_idle(&self) -> Duration {
        let is_punctual = self.longest_message + 4 * self.longest_way < 800;
        Duration::from_millis(if is_punctual { 900 } else { 2_500 })
    }

    /// Whether calls hold locks, and do not use them, while they wait for others.
    pub(super) fn may_hold_idle(&self) -> bool {
        self.wants_several > 0 || (self.wants_permit > 0 && self.wants_all > 0)
    }

    /// How long a body may run whose process hears that its lock was taken away: until the message has arrived, and
    /// a look was answered, before which there may have been another one.
    pub(super) fn longest_unheard(&self) -> Duration {
        Duration::from_millis(self.longest_message + 4 * self.longest_way + 1_500)
    }

    /// Whether nothing fails, and nothing makes up for that.
    pub(super) fn is_mild(&self) -> bool {
        self.kind == Kind::Mild && self.topology == Topology::One
    }

    /// From which TTL on a lease that is renewed is not lost, if there is one.
    pub(super) fn shortest_kept(&self) -> Option<Duration> {
        match (self.kind, self.topology) {
            (Kind::Mild, Topology::One) => Some(Duration::from_millis(1_500)),
            (Kind::Mild, Topology::Slots) | (Kind::Refusing, _) => Some(Duration::from_secs(4)),
            _ => None,
        }
    }
}

/// Half of what may happen does not happen at all in a seed.
fn up_to(dice: &mut Dice, most: u64) -> u64 {
    if dice.chance(500) { 0 } else { 1 + dice.below(most) }
}
