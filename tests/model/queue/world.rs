//! What can happen, in any order.

use stateright::{Model, Property};

use crate::queue::process::{Hold, Letter, Process, Purpose};
use crate::queue::properties;
use crate::queue::rules::Rules;
use crate::queue::server::{Owner, Request};
use crate::queue::state::{Cancelled, Packet, State};

/// What a model begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) rules: Rules,
    pub(crate) processes: u8,
    /// How many calls each process has.
    pub(crate) calls: u8,
    /// Whether a call receives its turn later than its line gives it.
    pub(crate) is_slow: bool,
    pub(crate) budget: Budget,
}

/// How often each of these may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// A line asks for its place again, or for a place behind its own turn.
    pub(crate) repetitions: u8,
    pub(crate) timeouts: u8,
    pub(crate) cancels: u8,
    pub(crate) expiries: u8,
    pub(crate) losses: u8,
    /// A request lands after it was given up.
    pub(crate) delays: u8,
    /// A request runs, and runs again because its connection broke.
    pub(crate) reruns: u8,
    /// A wake-up of a place comes that no script has published.
    pub(crate) forgeries: u8,
    pub(crate) kills: u8,
}

impl Budget {
    pub(crate) const fn of_each(count: u8) -> Self {
        Self {
            repetitions: count,
            timeouts: count,
            cancels: count,
            expiries: count,
            losses: count,
            delays: count,
            reruns: count,
            forgeries: count,
            kills: count,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    // A call begins in this process.
    Start(u8),
    // Its line asks.
    Ask(u8),
    // A call receives its turn.
    Receive(u8, Hold),
    // A body ends, and its lock is released.
    End(u8, Hold),
    // A body ends, and its turn is passed on.
    Pass(u8, Hold),
    // A call is dropped.
    Cancel(u8, Cancelled),
    // All leases are over that were granted so far.
    Lapse,
    // The lock ends at the server.
    Expire,
    Kill(u8),
    // A request, an answer or a message arrives.
    Arrive(Packet),
    Lose(Packet),
    // A request is given up, and will land.
    Delay(Letter),
    // A query counts as failed, and may be answered.
    TimeOut(Packet),
    // A request runs, and is sent again.
    Rerun(Letter),
    // A wake-up of this attempt is forged, or comes once more.
    Forge(Owner),
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.rules, self.processes, self.calls, self.budget)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !self.is_slow {
            let has_turn = |process: &&Process| !process.given.is_empty();
            if let Some(process) = state.processes.iter().find(has_turn) {
                return receipts(state, process, actions);
            }
        }
        for process in state.processes.iter().filter(|process| state.server.listens(process.number))
        {
            steps(state, process, actions);
            receipts(state, process, actions);
            ends(state, process, actions);
        }
        for (place, packet) in state.net.iter().enumerate() {
            if state.net.get(place + 1) != Some(packet) {
                arrivals(state, *packet, actions);
            }
        }
        if state.left.expiries > 0 {
            ended_leases(state, actions);
        }
        if state.left.forgeries > 0 {
            let places = state.processes.iter().filter_map(|process| process.place);
            actions.extend(places.map(|place| Action::Forge(place.owner)));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Start(number) => state.on(number, |process, _, out| process.start(out)),
            Action::Ask(number) => state.ask(number),
            Action::Receive(number, given) => {
                state.on(number, |process, lapsed, out| process.receive(given, lapsed, out));
            }
            Action::End(number, hold) => state.on(number, |process, _, out| process.end(hold, out)),
            Action::Pass(number, hold) => {
                state.on(number, |process, _, out| process.end_and_pass(hold, out));
            }
            Action::Cancel(number, call) => state.cancel(number, call),
            Action::Lapse => state.lapse(),
            Action::Expire => state.expire(),
            Action::Kill(number) => state.kill(number),
            Action::Arrive(packet) => state.arrive(packet),
            Action::Lose(packet) => state.lose(packet),
            Action::Delay(letter) => state.delay(letter),
            Action::TimeOut(packet) => state.time_out(packet),
            Action::Rerun(letter) => state.rerun(letter),
            Action::Forge(owner) => state.forge(owner),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// What the calls of a process may do next.
fn steps(state: &State, process: &Process, actions: &mut Vec<Action>) {
    let Process { number, place, turn, trying, .. } = *process;
    let asks_first = place.is_none() && turn.is_none();
    let may_cancel = state.left.cancels > 0;
    let may_ask = process.waiting > 0 && trying.is_none();
    let steps = [
        (process.calls > 0, Action::Start(number)),
        (may_ask && (asks_first || state.left.repetitions > 0), Action::Ask(number)),
        (may_cancel && process.waiting > 0, Action::Cancel(number, Cancelled::Waiting)),
        (may_cancel && trying.is_some(), Action::Cancel(number, Cancelled::Trying)),
        (state.left.kills > 0, Action::Kill(number)),
    ];
    actions.extend(steps.into_iter().filter(|(may, _)| *may).map(|(_, action)| action));
}

/// The calls that may receive their turns, or are gone first.
fn receipts(state: &State, process: &Process, actions: &mut Vec<Action>) {
    let number = process.number;
    let given = || process.given.iter().copied();
    actions.extend(given().map(|given| Action::Receive(number, given)));
    let gone = given().filter(|_| state.left.cancels > 0).map(Cancelled::Given);
    actions.extend(gone.map(|call| Action::Cancel(number, call)));
}

/// How its holds may end.
fn ends(state: &State, process: &Process, actions: &mut Vec<Action>) {
    let number = process.number;
    for hold in process.holds.iter().copied() {
        let is_held = !hold.is_lost;
        let may_pass = is_held && hold.has_turn && process.may_pass(hold.owner, state.lapsed);
        let may_drop = is_held && hold.has_turn && state.left.cancels > 0;
        let ends = [
            (true, Action::End(number, hold)),
            (may_pass, Action::Pass(number, hold)),
            (may_drop, Action::Cancel(number, Cancelled::Holding(hold))),
        ];
        actions.extend(ends.into_iter().filter(|(may, _)| *may).map(|(_, action)| action));
    }
}

/// How leases may end, and the lock at the server.
fn ended_leases(state: &State, actions: &mut Vec<Action>) {
    if state.lapsed < state.server.fence {
        actions.push(Action::Lapse);
    }
    let is_held = |owner| {
        let mut holds = state.processes.iter().flat_map(|process| &process.holds);
        holds.any(|hold| !hold.is_lost && hold.owner == owner)
    };
    if state.server.lock.is_some_and(|lock| lock.is_kept || !is_held(lock.owner)) {
        actions.push(Action::Expire);
    }
}

/// What may become of what is under way.
fn arrivals(state: &State, packet: Packet, actions: &mut Vec<Action>) {
    actions.push(Action::Arrive(packet));
    let (Packet::Request(letter) | Packet::Answer(letter, _)) = packet else {
        if state.left.losses > 0 {
            actions.push(Action::Lose(packet));
        }
        return;
    };
    let Letter { request, purpose, has_run } = letter;
    // A release that the background repeats is as good as one that is not lost.
    let is_repeated = purpose == Purpose::Background && matches!(request, Request::Release { .. });
    let is_lossy = !is_repeated && purpose != Purpose::GivenUp;
    let is_late = matches!(packet, Packet::Request(_)) && purpose != Purpose::GivenUp;
    let is_query = purpose == Purpose::Query { has_failed: false };
    let is_rerun = !has_run && purpose != Purpose::Background;
    let accidents = [
        (is_lossy && state.left.losses > 0, Action::Lose(packet)),
        (is_late && state.left.delays > 0, Action::Delay(letter)),
        (is_query && state.left.timeouts > 0, Action::TimeOut(packet)),
        (is_late && is_rerun && state.left.reruns > 0, Action::Rerun(letter)),
    ];
    actions.extend(accidents.into_iter().filter(|(may, _)| *may).map(|(_, action)| action));
}
