//! What can happen, in any order.

use stateright::{Model, Property};

use crate::release::call::{Call, Kind, Step};
use crate::release::properties;
use crate::release::rules::Rules;
use crate::release::server::Form;
use crate::release::state::State;

/// What a model begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) rules: Rules,
    pub(crate) kinds: [Kind; 3],
    pub(crate) budget: Budget,
}

/// How often each of these may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) tries: u8,
    pub(crate) expiries: u8,
    pub(crate) lost_answers: u8,
    pub(crate) delays: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    // A call tries, with a token of this form.
    Begin { call: usize, form: Form },
    // The request of a call runs, and the answer arrives. A holder's is a renewal or a look.
    Run(usize),
    // The request of a call runs, and the answer is lost.
    RunUnheard(usize),
    // The request of a call is still under way when the call repeats it.
    Delay(usize),
    // That one arrives.
    Arrive,
    // A waiter gives up.
    Leave(usize),
    // The body of a holder ends.
    End(usize),
    // The lease of the lock ends.
    Expire,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self.rules, self.kinds, self.budget)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(call) = state.sends {
            steps(state, call, &state.calls[call], actions);
            return;
        }
        for (number, call) in state.calls.iter().enumerate() {
            steps(state, number, call, actions);
        }
        if state.late.is_some() {
            actions.push(Action::Arrive);
        }
        if state.left.expiries > 0 && state.server.lock.is_some_and(|lock| lock.has_end) {
            actions.push(Action::Expire);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin { call, form } => state.begin(call, form),
            Action::Run(call) => state.run(call),
            Action::RunUnheard(call) => state.run_unheard(call),
            Action::Delay(call) => state.delay(call),
            Action::Arrive => state.arrive(),
            Action::Leave(call) => state.leave(call),
            Action::End(call) => state.end(call),
            Action::Expire => state.expire(),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// What a call may do next.
fn steps(state: &State, number: usize, call: &Call, actions: &mut Vec<Action>) {
    let sends = match call.step {
        Step::Idle => {
            let may_begin = state.left.tries > 0 && !has_new_peer(state, number);
            let native = call.knows_mark().then_some(Form::Native);
            let forms = native.into_iter().chain([Form::Plain]).filter(|_| may_begin);
            actions.extend(forms.map(|form| Action::Begin { call: number, form }));
            false
        }
        Step::Waiting => {
            actions.push(Action::Leave(number));
            state.may_ask(call)
        }
        Step::Holding => {
            actions.extend([Action::Run(number), Action::End(number)]);
            false
        }
        Step::Trying | Step::Deleting | Step::Releasing => true,
    };
    let accidents = [
        (sends, Action::Run(number)),
        (sends && state.left.lost_answers > 0, Action::RunUnheard(number)),
        (sends && state.left.delays > 0 && state.late.is_none(), Action::Delay(number)),
    ];
    actions.extend(accidents.into_iter().filter(|(may, _)| *may).map(|(_, action)| action));
}

/// Whether another call of its kind has to begin first, because either order is the same.
fn has_new_peer(state: &State, number: usize) -> bool {
    let call = &state.calls[number];
    let mut former = state.calls[..number].iter().filter(|former| former.kind == call.kind);
    former.any(|former| former.step == Step::Idle && former.owner.attempt == 0)
}
