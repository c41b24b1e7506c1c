//! A model of one lock, its queue, and the two ways of releasing it.
//!
//! A holder with a plain token releases by `release.lua`, which looks at the queue. One with a native token sends a
//! conditional delete, which does not: so a waiter marks the token, the delete does nothing then, and the script
//! follows.
//!
//! Three calls acquire the lock, wait and release. Answers are lost and requests repeated, a repeated one arrives late
//! or never, and leases end. The rules are in `rules.rs`; each is missed in some order of events if it is left out.
//!
//! Left out are turns, minimum holds and operators, who use the script alone, fencing tokens, and losses of data.
//!
//! See "When does one `DELEX` or `DELIFEQ` release a lock?" in DESIGN.md.

use rstest::rstest;
use stateright::Checker;

use self::call::Kind;
use self::properties::{ASKING, ENDED, ENDING, HELD, KEPT, KNOWN, MARKED, SERVED};
use self::rules::{Rule, Rules};
use self::world::{Budget, World};
use crate::visits::{breaks, visit};

mod call;
mod properties;
mod rules;
mod server;
mod state;
mod world;

#[rstest]
#[case::calls_of_one_kind(ALIKE)]
#[case::late_requests(LATE)]
#[case::a_user_without_the_right(UNENTITLED)]
#[case::a_holder_that_does_not_know_the_mark(OLDER)]
fn the_rules_are_sound_over(#[case] world: World) {
    let found = visit(world);
    for property in [HELD, KEPT, KNOWN, SERVED, ENDED, ASKING, ENDING] {
        found.assert_no_discovery(property);
    }
}

#[rstest]
#[case(Rule::WaitersMark, ALIKE, SERVED)]
#[case(Rule::EveryWaiterMarks, UNENTITLED, SERVED)]
#[case(Rule::PlainIsUnmarked, OLDER, KNOWN)]
#[case(Rule::MarkKeepsEnd, ALIKE, ENDING)]
#[case(Rule::WaitersAskAgain, ALIKE, ASKING)]
#[case(Rule::QueuedIsPlain, ALIKE, SERVED)]
#[case(Rule::DeleteCompares, ALIKE, HELD)]
#[case(Rule::DeleteCompares, LATE, KEPT)]
#[case(Rule::DeleteComparesMark, ALIKE, SERVED)]
#[case(Rule::ScriptDecides, ALIKE, ENDED)]
#[case(Rule::ScriptDecides, UNENTITLED, ENDED)]
#[case(Rule::ReleaseKnowsMark, ALIKE, ENDED)]
#[case(Rule::ReleaseKnowsMark, ALIKE, KNOWN)]
#[case(Rule::RenewalKnowsMark, ALIKE, KNOWN)]
#[case(Rule::TryKnowsMark, ALIKE, KNOWN)]
fn each_rule_is_missed_without_it(
    #[case] rule: Rule,
    #[case] world: World,
    #[case] property: &'static str,
) {
    let world = World { rules: Rules { without: Some(rule) }, ..world };
    assert!(breaks(world, property), "{rule:?}");
}

/// A newcomer takes the lock unmarked, and its release passes over the waiters that have not asked since.
#[test]
fn a_waiter_is_passed_over_only_after_the_end_of_a_lease() {
    let world = |expiries| World { budget: Budget { expiries, ..ALIKE.budget }, ..ALIKE };
    assert!(!breaks(world(0), MARKED));
    assert!(breaks(world(1), MARKED));
}

const ALIKE: World = world([Kind::Ours; 3], Budget { lost_answers: 1, ..ORDINARY });
const LATE: World = world([Kind::Ours; 3], Budget { tries: 3, delays: 1, ..ORDINARY });
const UNENTITLED: World = World { kinds: [Kind::Unentitled, Kind::Ours, Kind::Ours], ..ALIKE };
const OLDER: World = World { kinds: [Kind::Older, Kind::Ours, Kind::Ours], ..ALIKE };

const ORDINARY: Budget = Budget { tries: 4, expiries: 1, lost_answers: 0, delays: 0 };

const fn world(kinds: [Kind; 3], budget: Budget) -> World {
    World { rules: Rules::ALL, kinds, budget }
}
