//! What may fail in one seed. Each has its own mix, because faults hide each other: if all connections break all the
//! time, no call waits for long.

use std::time::Duration;

use super::dice::Dice;
use super::slot_owners::Topology;

/// Which rules a seed has to keep, and so what may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Messages are late and calls are cancelled; everything has to end well.
    Mild,
    /// As `Mild`, but servers refuse requests for a moment; that loses nothing.
    Refusing,
    /// As `Mild`, but locks are deleted or taken away, and their holders notified.
    Deleting,
    /// All faults but the loss of data: at most one call has the lock.
    Wild,
    /// Servers lose locks too: two calls may believe in one, with different fencing tokens.
    Losing,
}

impl Kind {
    pub(super) fn has_failures(self) -> bool {
        matches!(self, Self::Wild | Self::Losing)
    }
}

/// By the number of the seed.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connections break; what was sent may still arrive.
    Cut,
    /// The connections bring no reply, and do not break.
    Silence,
    /// As `SIGSTOP`, and `SIGCONT` later.
    Stop,
    /// Calls are not polled for a while; the background is.
    Block,
    /// As `SIGKILL`; another process starts.
    Kill,
    Unsubscribe,
    /// The subscription brings no message for a while, and breaks then.
    Deafen,
    Stall,
    /// A wake-up that no release has sent.
    Forge,
    Flush,
    Delete,
    Refuse,
    FailOver,
    Move,
    /// An operator asks the holder of a lock to stop.
    Revoke,
    /// An operator takes a lock away.
    Force,
}

impl Fault {
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

/// How probable each fault is in one step, at most, in thousandths.
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

/// Probabilities in thousandths, and times in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    pub(super) kind: Kind,
    pub(super) topology: Topology,
    pub(super) faults: Vec<(Fault, u64)>,
    /// At most `longest_way`, in these directions.
    pub(super) slow: u64,
    pub(super) longest_way: u64,
    pub(super) slow_ways: Vec<Way>,
    /// Longer than any deadline, in any direction.
    pub(super) very_slow: u64,
    /// At most `longest_message`.
    pub(super) late_message: u64,
    pub(super) longest_message: u64,
    pub(super) doubled_message: u64,
    pub(super) lost_message: u64,
    pub(super) cancel: u64,
    pub(super) long_body: u64,
    pub(super) wants_permit: u64,
    pub(super) permits: usize,
    pub(super) wants_all: u64,
    pub(super) wants_several: u64,
    pub(super) wants_once: u64,
    /// A worker pauses for long between calls.
    pub(super) rest: u64,
    pub(super) workers: u64,
    /// Many workers with short bodies pass turns on often.
    pub(super) is_crowded: bool,
    pub(super) command_deadline: u64,
    /// A campaign; a ticket in place of a release; a redemption.
    pub(super) leads: u64,
    pub(super) passes: u64,
    pub(super) redeems: u64,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    Caller,
    /// Renews, waits in queues, and sends deferred releases.
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

    /// How long a lock may be taken without a call that uses it, where nothing fails: the second for which it is
    /// reserved for a call that has gone, and the delays around that.
    pub(super) fn longest_idle(&self) -> Duration {
        let is_punctual = self.longest_message + 4 * self.longest_way < 800;
        Duration::from_millis(if is_punctual { 900 } else { 2_500 })
    }

    /// Whether calls hold locks while they wait for others.
    pub(super) fn may_hold_idle(&self) -> bool {
        self.wants_several > 0 || (self.wants_permit > 0 && self.wants_all > 0)
    }

    /// How long a body may run after its lock was taken away, if its process is notified: until the message has
    /// arrived, and a request was answered, before which there may have been another one.
    pub(super) fn longest_unheard(&self) -> Duration {
        Duration::from_millis(self.longest_message + 4 * self.longest_way + 1_500)
    }

    /// Whether nothing fails.
    pub(super) fn is_mild(&self) -> bool {
        self.kind == Kind::Mild && self.topology == Topology::One
    }

    /// The least TTL whose renewed lease is not lost, if there is one.
    pub(super) fn shortest_kept(&self) -> Option<Duration> {
        match (self.kind, self.topology) {
            (Kind::Mild, Topology::One) => Some(Duration::from_millis(1_500)),
            (Kind::Mild, Topology::Slots) | (Kind::Refusing, _) => Some(Duration::from_secs(4)),
            _ => None,
        }
    }
}

/// Is zero in half of the seeds.
fn up_to(dice: &mut Dice, most: u64) -> u64 {
    if dice.chance(500) { 0 } else { 1 + dice.below(most) }
}
