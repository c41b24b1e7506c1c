//! What can go wrong, and which of it a run draws.

use lockable_tests::{Dice, clock};

use super::SHARES;
use crate::settings::{Settings, Topology};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stop,
    Kill,
    Cut,
    CutInReply,
    HoldRequests,
    HoldReplies,
    HoldMessages,
    Delay,
    KillClients,
    KillSubscribers,
    PauseClients,
    FlushScripts,
    OutOfMemory,
    WithdrawRight,
    StopServer,
    RestartWithData,
    RestartWithout,
    ClockForward,
    ClockBack,
    ClockToAndFro,
    /// Behind one address.
    FailoverAtAddress,
    PlannedFailover,
    LossyFailover,
    MoveSlots,
    FreezeMaster,
    FailoverInMove,
    MoveGivenUp,
    /// It is removed, too.
    AddedNode,
}

/// Faults that happen beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// One process, and its way to the server.
    Process,
    /// The servers, while no two may hold a lock.
    Server,
    /// The servers, in windows.
    Window,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Kill => "kill",
            Self::Cut => "cut",
            Self::CutInReply => "cut-in-reply",
            Self::HoldRequests => "hold-requests",
            Self::HoldReplies => "hold-replies",
            Self::HoldMessages => "hold-messages",
            Self::Delay => "delay",
            Self::KillClients => "kill-clients",
            Self::KillSubscribers => "kill-subscribers",
            Self::PauseClients => "pause-clients",
            Self::FlushScripts => "flush-scripts",
            Self::OutOfMemory => "out-of-memory",
            Self::WithdrawRight => "withdraw-right",
            Self::StopServer => "stop-server",
            Self::RestartWithData => "restart-with-data",
            Self::RestartWithout => "restart-without-data",
            Self::ClockForward => "clock-forward",
            Self::ClockBack => "clock-back",
            Self::ClockToAndFro => "clock-to-and-fro",
            Self::PlannedFailover => "planned-failover",
            Self::LossyFailover => "lossy-failover",
            Self::MoveSlots => "move-slots",
            Self::FreezeMaster => "freeze-master",
            Self::FailoverAtAddress => "failover-at-address",
            Self::FailoverInMove => "failover-in-move",
            Self::MoveGivenUp => "move-given-up",
            Self::AddedNode => "node-added-and-removed",
        }
    }

    /// A restart from a file that has every write loses none.
    pub(crate) fn lane(self, topology: Topology) -> Lane {
        match self {
            Self::Stop
            | Self::Kill
            | Self::Cut
            | Self::CutInReply
            | Self::HoldRequests
            | Self::HoldReplies
            | Self::HoldMessages
            | Self::Delay => Lane::Process,
            Self::RestartWithData if topology == Topology::Aof => Lane::Server,
            Self::KillClients
            | Self::KillSubscribers
            | Self::PauseClients
            | Self::FlushScripts
            | Self::OutOfMemory
            | Self::WithdrawRight
            | Self::ClockBack
            | Self::MoveSlots
            | Self::AddedNode => Lane::Server,
            Self::StopServer
            | Self::RestartWithData
            | Self::RestartWithout
            | Self::ClockForward
            | Self::ClockToAndFro
            | Self::PlannedFailover
            | Self::LossyFailover
            | Self::FailoverAtAddress
            | Self::FailoverInMove
            | Self::MoveGivenUp
            | Self::FreezeMaster => Lane::Window,
        }
    }

    fn all(topology: Topology) -> Vec<Self> {
        let processes: &[Self] = &[Self::Stop, Self::Kill];
        let network: &[Self] = &[
            Self::Cut,
            Self::CutInReply,
            Self::HoldRequests,
            Self::HoldReplies,
            Self::HoldMessages,
            Self::Delay,
        ];
        let servers: &[Self] = &[
            Self::KillClients,
            Self::KillSubscribers,
            Self::PauseClients,
            Self::FlushScripts,
            Self::OutOfMemory,
            Self::WithdrawRight,
        ];
        let alone: &[Self] = &[
            Self::StopServer,
            Self::RestartWithData,
            Self::RestartWithout,
            Self::ClockForward,
            Self::ClockBack,
            Self::ClockToAndFro,
        ];
        let one: &[Self] = &[Self::FailoverAtAddress];
        let sentinel: &[Self] = &[Self::PlannedFailover, Self::LossyFailover];
        let cluster: &[Self] = &[
            Self::PlannedFailover,
            Self::MoveSlots,
            Self::FreezeMaster,
            Self::FailoverInMove,
            Self::MoveGivenUp,
            Self::AddedNode,
        ];
        let of_topology = match topology {
            Topology::One => [alone, one].concat(),
            Topology::Aof => alone.to_vec(),
            Topology::Sentinel => sentinel.to_vec(),
            Topology::Cluster => cluster.to_vec(),
        };
        let all = [processes, network, servers, &of_topology].concat();
        let is_possible = |kind: &Self| clock::can_be_set() || !kind.is_of_clocks();
        all.into_iter().filter(is_possible).collect()
    }

    fn is_of_clocks(self) -> bool {
        matches!(self, Self::ClockForward | Self::ClockBack | Self::ClockToAndFro)
    }

    /// What a run draws: all that come often enough in its length, or else a part, in another order for each seed.
    pub(crate) fn draw(settings: &Settings) -> Vec<Self> {
        let Settings { topology, seed, length } = settings;
        let mut all = Self::all(*topology);
        Dice::new(seed.wrapping_add(0x00C0_FFEE)).shuffle(&mut all);
        let millis = u64::try_from(length.as_millis()).expect("a run is short");
        let mut left = SHARES.map(|(lane, share)| (lane, millis * share / 1_000 / ROUNDS, 0));
        all.retain(|kind| {
            let lane = kind.lane(*topology);
            let left = left.iter_mut().find(|(of, ..)| *of == lane);
            let (_, millis, count) = left.expect("every lane is there");
            let takes = kind.millis(*topology) * kind.times();
            let is_drawn = *millis >= takes || *count < lane.fewest();
            if is_drawn {
                *millis = millis.saturating_sub(takes);
                *count += 1;
            }
            is_drawn
        });
        all
    }

    /// How often it comes while each of the others comes once: it is short, and seldom meets a call at the right moment.
    pub(super) fn times(self) -> u64 {
        if self == Self::MoveGivenUp { 4 } else { 1 }
    }

    /// About what one takes, with the pause before it.
    fn millis(self, topology: Topology) -> u64 {
        match self {
            Self::Cut
            | Self::CutInReply
            | Self::Kill
            | Self::KillClients
            | Self::KillSubscribers
            | Self::FlushScripts
            | Self::ClockForward
            | Self::ClockBack => 150,
            Self::HoldRequests
            | Self::HoldReplies
            | Self::HoldMessages
            | Self::Delay
            | Self::OutOfMemory
            | Self::WithdrawRight
            | Self::MoveSlots => 650,
            Self::Stop
            | Self::PauseClients
            | Self::RestartWithData
            | Self::RestartWithout
            | Self::ClockToAndFro => 800,
            Self::StopServer => 1_100,
            Self::PlannedFailover if topology == Topology::Cluster => 500,
            Self::FailoverAtAddress | Self::PlannedFailover => 1_800,
            Self::LossyFailover => 3_000,
            Self::FailoverInMove => 1_200,
            Self::MoveGivenUp => 450,
            Self::FreezeMaster => 5_300,
            Self::AddedNode => 4_300,
        }
    }
}

impl Lane {
    fn fewest(self) -> usize {
        match self {
            Self::Process | Self::Server => 2,
            Self::Window => 0,
        }
    }
}

/// How often each kind comes at least, and a little more.
const ROUNDS: u64 = 22;
