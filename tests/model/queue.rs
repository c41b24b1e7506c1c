//! A model of one lock, its queue, and the lines of the processes that wait for it.
//!
//! The scripts run as pure functions, and each process does what `waiters/line` does: it asks for a place, and again
//! when it is woken, has turns, passes them on, releases together with its next place, and gives back what no call
//! wants. Requests, answers and wake-ups arrive in any order. Some are lost, late, forged or run twice, leases end,
//! calls are dropped and processes are killed, each as often as the budget of a world says. The rules are in
//! `rules.rs`; each is missed in some order of events if it is left out.
//!
//! In an order that a failure prints, `Arrive(Request(…))` is a step of the server, and `Arrive(Answer(…))` and
//! `Arrive(WakeUp(…))` are steps of a process.
//!
//! There is no clock. A lock that was granted ends at the server after the deadlines of its holders, which a process
//! knows by when it asked. A lock that is only reserved for a waiter ends at any time.
//!
//! Left out are native releases, which the model `release` has, minimum holds, permits, sets, `once`, `fair`, renewals,
//! and servers that lose data.
//!
//! See "How does a call wait in the FIFO queue?" in DESIGN.md.

use lockable_tests::long_form;
use rstest::rstest;
use stateright::Checker;

use self::properties::{
    ALL_SERVED, ALWAYS, EXCLUSION, FIFO, FOUND, HANDED_OFF, HEARD, HELD, NEWCOMER, ONCE, OWNED,
    PASSED, RESERVED, RISING, SERVED, WANTED,
};
use self::rules::{Rule, Rules};
use self::world::{Budget, World};
use crate::visits::{breaks, reaches, visit_first, walk};

mod process;
mod properties;
mod rules;
mod server;
mod state;
mod world;

#[rstest]
#[case::queries_asked_again(AGAIN)]
#[case::three_processes(THREE)]
#[case::calls_that_receive_their_turns_late(SLOW)]
#[case::calls_that_are_dropped(CANCELS)]
#[case::leases_that_end(EXPIRIES)]
#[case::lost_requests_and_answers(LOSSES)]
#[case::requests_that_land_late(DELAYS)]
#[case::answers_that_come_late(TIMEOUTS)]
#[case::requests_that_run_twice(RERUNS)]
#[case::forged_wake_ups(FORGERIES)]
#[case::killed_processes(KILLS)]
fn the_rules_are_sound_over(#[case] world: World) {
    let found = visit_first(world, usize::MAX);
    for property in ALWAYS {
        found.assert_no_discovery(property);
    }
}

/// These worlds have more states than an ordinary run can visit. The shortest orders of events are all among those that
/// it visits.
#[rstest]
#[case::turns(MANY_TURNS)]
#[case::passes(MANY_PASSES)]
#[case::reruns(RERUNS_OF_THREE)]
#[case::forgeries(MANY_FORGERIES)]
#[case::three_processes(FAULTS_OF_THREE)]
#[case::every_fault(EVERY_FAULT)]
fn the_rules_are_sound_over_the_first_states_of(#[case] world: World) {
    let found = visit_first(world, long_form(8_000, 6_000_000));
    for property in ALWAYS {
        found.assert_no_discovery(property);
    }
}

/// The long ones are drawn.
#[rstest]
#[case::turns(MANY_TURNS)]
#[case::passes(MANY_PASSES)]
#[case::forgeries(MANY_FORGERIES)]
#[case::three_processes(FAULTS_OF_THREE)]
#[case::every_fault(EVERY_FAULT)]
fn the_rules_are_sound_over_drawn_orders_of(#[case] world: World) {
    let found = walk(world, long_form(5_000, 5_000_000));
    for property in ALWAYS {
        found.assert_no_discovery(property);
    }
}

#[rstest]
#[case(Rule::ReleaseCompares, EXPIRIES, HELD)]
#[case(Rule::JoinsOnce, AGAIN, ONCE)]
#[case(Rule::LeaveEndsHold, AGAIN, OWNED)]
#[case(Rule::HandOffTakesOut, CANCELS, WANTED)]
#[case(Rule::HandOffIsHeard, KILLS, HEARD)]
#[case(Rule::HeadIsFirst, THREE, FIFO)]
#[case(Rule::FreeLockIsTheHeads, EXPIRIES, FIFO)]
#[case(Rule::NextIsBehind, TURNS, FIFO)]
#[case(Rule::OwnLockIsFound, AGAIN, OWNED)]
#[case(Rule::QueryLengthens, THREE, HELD)]
#[case(Rule::KeptTurnReserves, THREE, RISING)]
#[case(Rule::ReservesPasses, PASSES, RESERVED)]
#[case(Rule::ReservesPasses, PASSES, RISING)]
#[case(Rule::MessageGrantsNothing, LOSSES, HELD)]
#[case(Rule::MessageGrantsNothing, FORGERIES, EXCLUSION)]
#[case(Rule::WokenAsks, THREE, SERVED)]
#[case(Rule::CountsFromSending, EXPIRIES, EXCLUSION)]
#[case(Rule::RepeatedIsKnown, AGAIN, HELD)]
#[case(Rule::LeftoverIsGivenBack, CANCELS, WANTED)]
#[case(Rule::LeftoverIsGivenBack, AGAIN, OWNED)]
#[case(Rule::TurnLastsToAnswer, CANCELS, FOUND)]
#[case(Rule::TurnLastsToAnswer, PASSES, SERVED)]
#[case(Rule::OvertakenLeaves, AGAIN, OWNED)]
#[case(Rule::LostLeaves, EXPIRIES, OWNED)]
#[case(Rule::PassesEnd, PASSES, RESERVED)]
#[case(Rule::LastCallLeaves, CANCELS, WANTED)]
#[case(Rule::TokenIsNew, TURNS, EXCLUSION)]
#[case(Rule::LossEndsBody, EXPIRIES, EXCLUSION)]
#[case(Rule::TryIsGivenBack, CANCELS, OWNED)]
fn each_rule_is_missed_without_it(
    #[case] rule: Rule,
    #[case] world: World,
    #[case] property: &'static str,
) {
    assert_missed(rule, world, property);
}

/// What breaks these comes after many steps. Unit tests of `waiters/line`, and of the scripts, miss the same rules at
/// once.
#[rstest]
#[case(Rule::ReleaseLengthens, TURNS_TWICE, HELD)]
#[case(Rule::UnansweredLeaves, RERUNS_OF_THREE, WANTED)]
#[case(Rule::ReturnedLeaves, UNRECEIVED, WANTED)]
#[case(Rule::FormerLeaves, UNRECEIVED, WANTED)]
#[ignore = "each visits 100 000 states or more; `--include-ignored`"]
fn each_rule_of_rare_orders_is_missed_without_it(
    #[case] rule: Rule,
    #[case] world: World,
    #[case] property: &'static str,
) {
    assert_missed(rule, world, property);
}

fn assert_missed(rule: Rule, world: World, property: &'static str) {
    let world = World { rules: Rules { without: Some(rule) }, ..world };
    assert!(breaks(world, property), "{rule:?}");
}

/// So the properties are about something.
#[rstest]
#[case(ALL_SERVED, THREE)]
#[case(HANDED_OFF, AGAIN)]
#[case(PASSED, PASSES)]
#[case(NEWCOMER, world(3, 1, Budget { expiries: 1, ..ORDINARY }))]
fn it_is_possible_that(#[case] possible: &'static str, #[case] world: World) {
    assert!(reaches(world, possible));
}

const AGAIN: World = world(2, 1, Budget { repetitions: 2, ..ORDINARY });
const THREE: World = world(3, 1, ORDINARY);
const TURNS: World = world(2, 2, ORDINARY);
const PASSES: World = world(1, 4, ORDINARY);
const SLOW: World = World { is_slow: true, ..world(1, 3, Budget { repetitions: 1, ..ORDINARY }) };
const UNRECEIVED: World = World {
    is_slow: true,
    ..world(1, 3, Budget { repetitions: 2, cancels: 1, expiries: 1, ..ORDINARY })
};
const CANCELS: World = world(2, 1, Budget { cancels: 1, repetitions: 1, ..ORDINARY });
const EXPIRIES: World = world(2, 1, Budget { expiries: 2, repetitions: 1, ..ORDINARY });
const LOSSES: World = world(2, 1, Budget { losses: 1, expiries: 1, ..ORDINARY });
const DELAYS: World = world(2, 1, Budget { delays: 1, cancels: 1, ..ORDINARY });
const TIMEOUTS: World = world(2, 1, Budget { timeouts: 1, repetitions: 1, ..ORDINARY });
const RERUNS: World = world(2, 1, Budget { reruns: 1, expiries: 1, ..ORDINARY });
const FORGERIES: World = world(2, 1, Budget { forgeries: 1, expiries: 1, ..ORDINARY });
const KILLS: World = world(3, 1, Budget { kills: 1, ..ORDINARY });

/// A release runs, and runs again when the lock was reserved for its next attempt meanwhile.
const TURNS_TWICE: World = world(2, 2, Budget { reruns: 1, ..ORDINARY });

const RERUNS_OF_THREE: World = world(3, 1, Budget { reruns: 1, repetitions: 1, ..ORDINARY });
const MANY_TURNS: World = world(2, 2, Budget { cancels: 1, ..AGAIN.budget });
const MANY_PASSES: World =
    World { is_slow: true, ..world(1, 4, Budget { cancels: 1, ..EXPIRIES.budget }) };
const MANY_FORGERIES: World =
    world(2, 1, Budget { forgeries: 2, reruns: 1, cancels: 1, delays: 1, ..EXPIRIES.budget });
const FAULTS_OF_THREE: World = world(3, 1, Budget { kills: 0, ..EVERYTHING });
const EVERY_FAULT: World = World { is_slow: true, ..world(2, 2, EVERYTHING) };

const EVERYTHING: Budget = Budget { expiries: 2, ..Budget::of_each(1) };

const ORDINARY: Budget = Budget::of_each(0);

const fn world(processes: u8, calls: u8, budget: Budget) -> World {
    World { rules: Rules::ALL, processes, calls, is_slow: false, budget }
}
