//! What can go wrong, and which of it a run draws.

use lockable_tests::{Dice, clock};

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
    PlannedFailover,
    LossyFailover,
    MoveSlots,
    FreezeMaster,
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
            | Self::MoveSlots => Lane::Server,
            Self::StopServer
            | Self::RestartWithData
            | Self::RestartWithout
            | Self::ClockForward
            | Self::ClockToAndFro
            | Self::PlannedFailover
            | Self::LossyFailover
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
        let alone: &[Self] = &[Self::StopServer, Self::RestartWithData];
        let sentinel: &[Self] = &[Self::PlannedFailover, Self::LossyFailover];
        let cluster: &[Self] = &[Self::PlannedFailover, Self::MoveSlots, Self::FreezeMaster];
        match topology {
            Topology::One | Topology::Aof => [processes, network, servers, alone].concat(),
            Topology::Sentinel => [processes, network, servers, sentinel].concat(),
            Topology::Cluster => [processes, servers, cluster].concat(),
        }
    }

    /// What a run of this length draws: no more than come often enough in it.
    pub(crate) fn draw(settings: &Settings) -> Vec<Self> {
        let Settings { topology, seed, length } = settings;
        let mut dice = Dice::new(seed.wrapping_add(0x00C0_FFEE));
        let mut all = Self::all(*topology);
        if matches!(topology, Topology::One | Topology::Aof) {
            let of_time = Self::of_time(&mut dice);
            // A file that lacks the latest writes is a loss, too.
            let loses = |kind: &Self| {
                kind.lane(*topology) == Lane::Window && *kind == Self::RestartWithData
            };
            all.retain(|kind| of_time.len() == 1 || !loses(kind));
            all.extend(of_time);
        }
        dice.shuffle(&mut all);
        let mut left = [Lane::Process, Lane::Server, Lane::Window].map(|lane| {
            let seconds = usize::try_from(length.as_secs()).expect("a run is short");
            (lane, (seconds / lane.seconds(*topology)).max(lane.fewest()))
        });
        all.retain(|kind| {
            let lane = kind.lane(*topology);
            let left = left.iter_mut().find(|(of, _)| *of == lane);
            let left = &mut left.expect("every lane is there").1;
            let is_drawn = *left > 0;
            *left = left.saturating_sub(1);
            is_drawn
        });
        all
    }

    /// Clocks, or the loss of all data: after both, fencing tokens may go back, as the documentation says.
    fn of_time(dice: &mut Dice) -> Vec<Self> {
        if clock::can_be_set() && dice.is_one_of(2) {
            vec![Self::ClockForward, Self::ClockBack, Self::ClockToAndFro]
        } else {
            vec![Self::RestartWithout]
        }
    }
}

impl Lane {
    /// In how many seconds of a run one kind comes twenty times.
    fn seconds(self, topology: Topology) -> usize {
        let is_group = matches!(topology, Topology::Sentinel | Topology::Cluster);
        match self {
            Self::Process | Self::Server => 24,
            // An election takes its time.
            Self::Window if is_group => 240,
            Self::Window => 60,
        }
    }

    fn fewest(self) -> usize {
        match self {
            Self::Process | Self::Server => 2,
            Self::Window => 0,
        }
    }
}
