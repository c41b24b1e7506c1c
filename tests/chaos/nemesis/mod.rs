//! Lets things go wrong, as the seed says.

use std::thread;
use std::time::Duration;

use lockable_tests::Dice;

use crate::nap;
use crate::record::boot_time;
use crate::settings::Settings;
use crate::world::World;

mod groups;
mod kind;
mod processes;
mod servers;

pub(crate) use kind::{Kind, Lane};

/// Runs for the length of the run; then all is as it was.
pub(crate) fn rage(world: &World, settings: &Settings, kinds: &[Kind]) {
    let start = boot_time();
    thread::scope(|scope| {
        for lanes in [&[Lane::Process][..], &[Lane::Server, Lane::Window]] {
            let seed = settings.seed.wrapping_mul(31).wrapping_add(lanes.len() as u64);
            let has_windows = kinds.iter().any(|kind| kind.lane(settings.topology) == Lane::Window);
            let pace = Cycle { start, end: start + nanos(settings.length), has_windows };
            let runs = lanes.iter().map(|lane| Bag::of(*lane, settings, kinds)).collect();
            scope.spawn(move || Run { world, dice: Dice::new(seed), pace, bags: runs }.run());
        }
    });
}

/// Faults one after the other.
struct Run<'a> {
    world: &'a World,
    dice: Dice,
    pace: Cycle,
    bags: Vec<Bag>,
}

impl Run<'_> {
    fn run(mut self) {
        while let Some(phase) = self.pace.phase() {
            let place = self.bags.iter().position(|bag| phase.allows(bag.lane));
            let kind = place.and_then(|place| self.bags[place].next(&mut self.dice));
            let Some(kind) = kind else {
                nap(Duration::from_millis(20));
                continue;
            };
            nap(self.dice.millis(10..200));
            let begin = boot_time();
            let Effect { felt, lost } = kind.strike(self.world, &mut self.dice);
            let end = boot_time();
            let is_window = kind.lane(self.world.topology) == Lane::Window;
            let lost = is_window.then(|| lost.unwrap_or_else(|| self.world.servers.next_token()));
            let lost = lost.map_or_else(|| "-".to_owned(), |lost| lost.to_string());
            let (name, felt) = (kind.name(), end + nanos(felt));
            self.world.record.write(format_args!("fault {name} {begin} {end} {felt} {lost}"));
        }
    }
}

/// What is left of a fault.
struct Effect {
    /// For how long it may still be felt.
    felt: Duration,
    /// A fencing token above those of all locks that it has harmed, where that is known already.
    lost: Option<u64>,
}

impl From<Duration> for Effect {
    fn from(felt: Duration) -> Self {
        Self { felt, lost: None }
    }
}

/// The kinds of a lane, most of them as often as the others.
struct Bag {
    lane: Lane,
    kinds: Vec<Kind>,
    left: Vec<Kind>,
}

impl Bag {
    fn of(lane: Lane, settings: &Settings, kinds: &[Kind]) -> Self {
        let is_of_it = |kind: &Kind| kind.lane(settings.topology) == lane;
        let kinds = kinds.iter().copied().filter(is_of_it);
        let kinds = kinds.flat_map(|kind| (0..kind.times()).map(move |_| kind)).collect();
        Self { lane, kinds, left: Vec::new() }
    }

    fn next(&mut self, dice: &mut Dice) -> Option<Kind> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            dice.shuffle(&mut self.left);
        }
        self.left.pop()
    }
}

/// Time in turns: faults, calm, faults that open windows, calm.
struct Cycle {
    start: u64,
    end: u64,
    has_windows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Faults,
    Windows,
    Calm,
}

impl Cycle {
    fn phase(&self) -> Option<Phase> {
        let now = boot_time();
        let place = (now - self.start) % (TURN * 2);
        (now < self.end).then_some(match place {
            place if place < BUSY => Phase::Faults,
            place if place < TURN => Phase::Calm,
            place if place < TURN + BUSY && !self.has_windows => Phase::Faults,
            place if place < TURN + BUSY_IN_WINDOWS => Phase::Windows,
            _ => Phase::Calm,
        })
    }
}

impl Phase {
    fn allows(self, lane: Lane) -> bool {
        match self {
            Self::Faults => lane != Lane::Window,
            Self::Windows => lane != Lane::Server,
            Self::Calm => false,
        }
    }
}

impl Kind {
    /// Lets it happen, and takes it back.
    fn strike(self, world: &World, dice: &mut Dice) -> Effect {
        let felt = match self {
            Self::Stop => processes::stop(world, dice),
            Self::Kill => processes::kill(world, dice),
            Self::Cut => processes::cut(world, dice),
            Self::CutInReply => processes::cut_in_reply(world, dice),
            Self::HoldRequests => processes::hold_requests(world, dice),
            Self::HoldReplies => processes::hold_replies(world, dice),
            Self::HoldMessages => processes::hold_messages(world, dice),
            Self::Delay => processes::delay(world, dice),
            Self::KillClients => servers::kill_clients(world, "normal"),
            Self::KillSubscribers => servers::kill_clients(world, "pubsub"),
            Self::PauseClients => servers::pause_clients(world, dice),
            Self::FlushScripts => servers::flush_scripts(world),
            Self::OutOfMemory => servers::run_out_of_memory(world, dice),
            Self::WithdrawRight => servers::withdraw_right(world, dice),
            Self::StopServer => servers::stop(world, dice),
            Self::RestartWithData => servers::restart_with_data(world, dice),
            Self::RestartWithout => servers::restart_without_data(world, dice),
            Self::ClockForward => servers::set_clock_forward(world, dice),
            Self::ClockBack => servers::set_clock_back(world, dice),
            Self::ClockToAndFro => servers::set_clock_to_and_fro(world, dice),
            Self::FailoverAtAddress => return servers::fail_over(world, dice),
            Self::PlannedFailover => groups::fail_over(world),
            Self::LossyFailover => groups::lose_primary(world, dice),
            Self::MoveSlots => groups::move_slots(world, dice),
            Self::FreezeMaster => groups::freeze_master(world, dice),
            Self::FailoverInMove => return groups::fail_over_in_move(world, dice),
            Self::MoveGivenUp => return groups::give_up_move(world, dice),
            Self::AddedNode => groups::add_node(world, dice),
        };
        felt.into()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a run is short")
}

const SECOND: u64 = 1_000_000_000;

/// Calm has to be longer than what a waiter may wait beside a free lock, and than what closes a window.
const TURN: u64 = 22 * SECOND;
const BUSY: u64 = 19 * SECOND;
/// With what the last one takes, and until its window is closed, less than half of both turns.
const BUSY_IN_WINDOWS: u64 = 16 * SECOND;

/// The thousandths of a run in which processes, servers and windows have faults.
const SHARES: [(Lane, u64); 3] = [(Lane::Process, 795), (Lane::Server, 431), (Lane::Window, 363)];
