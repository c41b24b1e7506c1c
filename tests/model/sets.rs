//! A model of calls for several keys: no order of events lets them wait for each other in a circle, and of those that
//! try once one has all of its keys.
//!
//! Three calls want some of three keys. A call that waits tries all that are left at the same time, so any of its
//! tries may be the first to arrive; it then lets go of what is behind the first busy key, and waits for that one.
//! Left out are leases that end, which end a wait too.
//!
//! See "How does a call acquire several keys without a deadlock?" in DESIGN.md.

use rstest::rstest;
use stateright::{Checker, Model, Property};

use crate::visits::{breaks, visit};

const ENDED: &str = "no call waits for ever";
const WON: &str = "of calls that try once, one has all of its keys";

/// What keeps calls from waiting in a circle. A model leaves out one of these, to show what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The keys are taken in one order, however they are written.
    Sorted,
    /// A call that waits lets go of the keys behind the one that it waits for.
    LetsGo,
    /// One try takes the keys one after the other.
    OneByOne,
}

#[derive(Clone, Copy, Debug)]
struct World {
    /// As they are written.
    keys: [&'static [usize]; 3],
    waits: bool,
    without: Option<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    calls: [Call; 3],
    /// The call that has each key.
    holders: [Option<usize>; 3],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    /// The keys in the order in which it takes them, and what each try has found.
    tries: Vec<(usize, Try)>,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Try {
    Open,
    Held,
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Tries,
    Waits(usize),
    HasAll,
    /// It has released, or given up.
    Over,
}

/// A try arrives, a waiter has its key, or a holder releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Try { call: usize, key: usize },
    Grant(usize),
    Release(usize),
}

impl World {
    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Whether nothing can happen any more.
    fn is_at_end(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        actions.is_empty()
    }

    /// A call that waits tries all at the same time.
    fn may_try(&self, call: &Call, key: usize) -> bool {
        let first = call.tries.iter().find(|(_, tried)| *tried == Try::Open);
        let is_open = call.tries.contains(&(key, Try::Open));
        let is_at_once = self.waits || !self.has(Rule::OneByOne);
        is_open && (is_at_once || first.is_some_and(|(first, _)| *first == key))
    }
}

impl State {
    fn tried(&mut self, world: &World, number: usize, key: usize) {
        let found = if self.holders[key].is_none() { Try::Held } else { Try::Busy };
        if found == Try::Held {
            self.holders[key] = Some(number);
        }
        let tries = &mut self.calls[number].tries;
        tries.iter_mut().filter(|(tried, _)| *tried == key).for_each(|(_, tried)| *tried = found);
        let is_answered = tries.iter().all(|(_, tried)| *tried != Try::Open);
        let gives_up = found == Try::Busy && !world.waits && world.has(Rule::OneByOne);
        if is_answered || gives_up {
            self.decide(world, number);
        }
    }

    /// What a call does that has its answers.
    fn decide(&mut self, world: &World, number: usize) {
        let tries = &self.calls[number].tries;
        let Some(busy) = tries.iter().position(|(_, tried)| *tried == Try::Busy) else {
            self.calls[number].step = Step::HasAll;
            return;
        };
        let kept = match (world.waits, world.has(Rule::LetsGo)) {
            (false, _) => 0,
            (true, true) => busy,
            (true, false) => tries.len(),
        };
        let key = tries[busy].0;
        for (key, tried) in &mut self.calls[number].tries[kept..] {
            if *tried == Try::Held {
                self.holders[*key] = None;
            }
            *tried = Try::Open;
        }
        self.calls[number].step = if world.waits { Step::Waits(key) } else { Step::Over };
    }

    fn granted(&mut self, world: &World, number: usize) {
        let Step::Waits(key) = self.calls[number].step else { return };
        self.calls[number].step = Step::Tries;
        for (tried, found) in &mut self.calls[number].tries {
            if *tried != key && *found == Try::Busy {
                *found = Try::Open;
            }
        }
        self.tried(world, number, key);
    }

    fn released(&mut self, number: usize) {
        self.calls[number].step = Step::Over;
        let own = |holder: &&mut Option<usize>| **holder == Some(number);
        self.holders.iter_mut().filter(own).for_each(|holder| *holder = None);
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let call = |keys: &[usize]| {
            let mut keys = keys.to_vec();
            if self.has(Rule::Sorted) {
                keys.sort_unstable();
            }
            let tries = keys.into_iter().map(|key| (key, Try::Open)).collect();
            Call { tries, step: Step::Tries }
        };
        vec![State { calls: self.keys.map(call), holders: [None; 3] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, call) in state.calls.iter().enumerate() {
            match call.step {
                Step::Tries => {
                    let keys = call.tries.iter().map(|(key, _)| *key);
                    let keys = keys.filter(|key| self.may_try(call, *key));
                    actions.extend(keys.map(|key| Action::Try { call: number, key }));
                }
                Step::Waits(key) if state.holders[key].is_none() => {
                    actions.push(Action::Grant(number));
                }
                // What tries once overlaps for as long as the others try.
                Step::HasAll if self.waits => actions.push(Action::Release(number)),
                Step::HasAll | Step::Waits(_) | Step::Over => {}
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Try { call, key } => state.tried(self, call, key),
            Action::Grant(call) => state.granted(self, call),
            Action::Release(call) => state.released(call),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ENDED, |world: &Self, state: &State| {
                let has_ended = |call: &Call| matches!(call.step, Step::HasAll | Step::Over);
                !world.is_at_end(state) || state.calls.iter().all(has_ended)
            }),
            Property::always(WON, |world: &Self, state: &State| {
                let has_won = |call: &Call| call.step == Step::HasAll;
                world.waits || !world.is_at_end(state) || state.calls.iter().any(has_won)
            }),
        ]
    }
}

/// Each two have a key in common; and as one that wants all is among them.
const CIRCLE: [&[usize]; 3] = [&[0, 1], &[1, 2], &[2, 0]];
const ALL: [&[usize]; 3] = [&[2, 1, 0], &[1, 0], &[0, 2]];
const SAME: [&[usize]; 3] = [&[0, 1, 2], &[2, 1, 0], &[1, 2, 0]];

#[rstest]
fn calls_for_several_keys_end(
    #[values(CIRCLE, ALL, SAME)] keys: [&'static [usize]; 3],
    #[values(true, false)] waits: bool,
) {
    let found = visit(World { keys, waits, without: None });
    found.assert_no_discovery(ENDED);
    found.assert_no_discovery(WON);
}

#[rstest]
#[case(Rule::Sorted, true, ENDED)]
#[case(Rule::LetsGo, true, ENDED)]
#[case(Rule::OneByOne, false, WON)]
fn each_rule_is_missed_without_it(
    #[case] rule: Rule,
    #[case] waits: bool,
    #[case] property: &'static str,
) {
    let is_missed = |keys| breaks(World { keys, waits, without: Some(rule) }, property);
    assert!([CIRCLE, ALL, SAME].into_iter().any(is_missed), "{rule:?}");
}
