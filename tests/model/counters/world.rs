//! What can happen, in any order.

use stateright::{Model, Property};

use crate::counters::call::{Call, Step};
use crate::counters::properties;
use crate::counters::rules::Rules;
use crate::counters::server::Time;
use crate::counters::state::State;

/// What a model begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) rules: Rules,
    /// Whether a proxy leads open connections to the server that a failover promotes.
    pub(crate) is_proxied: bool,
    /// Which counter each key has.
    pub(crate) slots: [usize; 2],
    /// The TTL of the counter that the leases of each key need.
    pub(crate) lives: [Time; 2],
    pub(crate) budget: Budget,
}

/// How often each of these may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) tries: u8,
    pub(crate) hand_offs: u8,
    pub(crate) reconnections: u8,
    pub(crate) given_up: u8,
    pub(crate) flushes: u8,
    pub(crate) deletions: u8,
    pub(crate) failovers: u8,
    pub(crate) sleeps: u8,
    pub(crate) clock_steps: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    // A call sends its first request, whose first part runs. If another hold of the lock ends now, it runs after
    // that.
    Send { call: usize, ends_hold: bool },
    // The next part of a request runs.
    Run(usize),
    // The answer to a request arrives.
    Answer(usize),
    // A script ends a hold of the lock, if there is one, and grants the lock to a call that waits, after it has
    // passed over this many that are gone.
    HandOff { call: usize, gone: u8 },
    // A connection breaks, with all requests under way.
    Reconnect(usize),
    // The call is dropped, or its process ends, between its two requests.
    GiveUp(usize),
    // The `INCR` of a call that was given up runs as late as this.
    CountLate { key: usize },
    // All data are lost.
    Flush,
    // A counter alone is lost.
    Delete { slot: usize },
    // The replica receives no more.
    Lag,
    // That replica is promoted.
    FailOver,
    // Nothing is sent for longer than a connection trusts a counter, but shorter than that lives.
    Sleep,
    SetClockBack,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // An answer arrives at once where nothing would notice a delay, which leaves fewer orders.
        let at_once = |call: &&Call| call.is_answered() && is_delay_unnoticed(state, call);
        if let Some(call) = state.calls.iter().find(at_once) {
            actions.push(Action::Answer(call.number));
            return;
        }
        for call in &state.calls {
            steps(state, call, actions);
        }
        accidents(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Send { call, ends_hold } => state.send(call, ends_hold),
            Action::Run(call) => state.calls[call].run(&mut state.server),
            Action::Answer(call) => state.answer(call),
            Action::HandOff { call, gone } => state.hand_off(call, gone),
            Action::Reconnect(connection) => state.reconnect(connection),
            Action::GiveUp(call) => state.give_up(call),
            Action::CountLate { key } => state.count_late(key),
            Action::Flush => state.flush(),
            Action::Delete { slot } => state.delete(slot),
            Action::Lag => state.replica = Some(state.server.data.clone()),
            Action::FailOver => state.fail_over(self.is_proxied),
            Action::Sleep => state.sleep(),
            Action::SetClockBack => state.set_clock_back(),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// Whether the connection has no other request under way, and stays what it is.
fn is_delay_unnoticed(state: &State, call: &Call) -> bool {
    let on_same = state.under_way().filter(|other| other.connection == call.connection);
    on_same.count() == 1 && state.left.failovers == 0 && state.left.reconnections == 0
}

/// What a call may do next.
fn steps(state: &State, call: &Call, actions: &mut Vec<Action>) {
    let number = call.number;
    match call.step {
        Step::Locked { .. } | Step::Lost | Step::Seeded { .. } => actions.push(Action::Run(number)),
        Step::Counted { .. } | Step::Looked { .. } => actions.push(Action::Answer(number)),
        Step::Idle | Step::Broken => {
            let may_try = state.left.tries > 0 && state.under_way().count() < MAX_UNDER_WAY;
            if call.step == Step::Broken || may_try {
                actions.push(Action::Send { call: number, ends_hold: false });
                if state.server.data.locks[call.key].is_some_and(|owner| owner != call.owner()) {
                    actions.push(Action::Send { call: number, ends_hold: true });
                }
            }
            if call.step == Step::Idle && state.left.hand_offs > 0 {
                actions.extend([0, 2].map(|gone| Action::HandOff { call: number, gone }));
            }
        }
    }
    if call.step == Step::Lost && state.left.given_up > 0 {
        actions.push(Action::GiveUp(number));
    }
}

/// What may befall all of them.
fn accidents(state: &State, actions: &mut Vec<Action>) {
    let left = &state.left;
    let has_two_counters = state.server.slots[0] != state.server.slots[1];
    let is_quiet = state.under_way().next().is_none();
    let fail = if state.replica.is_none() { Action::Lag } else { Action::FailOver };
    let accidents = [
        (left.reconnections > 0, Action::Reconnect(0)),
        (left.reconnections > 0, Action::Reconnect(1)),
        (left.given_up > 0, Action::CountLate { key: 0 }),
        (left.flushes > 0, Action::Flush),
        (left.deletions > 0, Action::Delete { slot: 0 }),
        (left.deletions > 0 && has_two_counters, Action::Delete { slot: 1 }),
        (left.failovers > 0, fail),
        (left.sleeps > 0 && is_quiet, Action::Sleep),
        (left.clock_steps > 0 && is_quiet, Action::SetClockBack),
    ];
    actions.extend(accidents.into_iter().filter(|(may, _)| *may).map(|(_, action)| action));
}

/// How many requests are under way at most.
const MAX_UNDER_WAY: usize = 2;
