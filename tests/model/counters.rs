//! A model of the fence counters of two locks: one of their slot, or two that are seeded together.
//!
//! Two processes acquire the locks. What can happen besides is in `world.rs`, the rules that keep
//! fencing tokens rising are in `rules.rs`. All together they are sound over each kind of loss, and each of them is
//! missed in some order of events if it is left out.
//!
//! At most two requests are under way at a time, and of each event there are as few as show something. Left out are
//! a promoted server whose clock is behind, and what makes a connection forget earlier than it must.
//!
//! See "What exactly do fencing tokens guarantee?" in DESIGN.md.

use rstest::rstest;
use stateright::Checker;

use self::properties::{ENDING, NEAR, NEEDED, RISING, RISING_AS_SEEN, RISING_IN_PARTS};
use self::rules::{Rule, Rules};
use self::state::{LONG, SHORT};
use self::world::{Budget, World};
use crate::visits::{breaks, visit};

mod call;
mod history;
mod properties;
mod rules;
mod server;
mod state;
mod world;

#[rstest]
#[case::a_flush(FLUSH)]
#[case::a_deleted_counter(DELETION)]
#[case::hand_offs_and_a_flush(HAND_OFFS)]
#[case::a_failover(FAILOVER)]
#[case::a_new_connection(RECONNECTION)]
#[case::an_expired_counter(EXPIRY)]
#[case::a_clock_that_is_set_back(CLOCK)]
#[case::neighbours_and_a_flush(NEIGHBOURS)]
#[case::neighbours_and_a_deleted_counter(near(DELETION, 2, 1))]
#[case::neighbours_and_hand_offs(near(HAND_OFFS, 1, 3))]
#[case::neighbours_and_a_failover(near(FAILOVER, 3, 0))]
#[case::neighbours_that_expire(near(EXPIRY, 2, 1))]
#[case::neighbours_and_a_clock(NEIGHBOURS_CLOCK)]
fn the_rules_are_sound_over(#[case] world: World) {
    let found = visit(world);
    for property in [RISING, NEAR, ENDING, NEEDED] {
        found.assert_no_discovery(property);
    }
}

#[rstest]
#[case(Rule::SeedReadsTime, FLUSH, RISING)]
#[case(Rule::SeedNeverLowers, FLUSH, RISING)]
#[case(Rule::SeedNeverShortens, CLOCK, RISING)]
#[case(Rule::EachConnectionSeeds, FAILOVER, RISING)]
#[case(Rule::LongerLeaseSeeds, CLOCK, RISING)]
#[case(Rule::MemoryEndsFirst, EXPIRY, NEEDED)]
#[case(Rule::NewConnectionForgets, FAILOVER, RISING)]
#[case(Rule::CountIsCompared, FLUSH, RISING)]
#[case(Rule::CountIsCompared, FLUSH, ENDING)]
#[case(Rule::CountIsComparedAsSent, FLUSH, NEEDED)]
#[case(Rule::SecondRequestLooks, FLUSH, RISING)]
#[case(Rule::SeedNeverShortens, NEIGHBOURS_CLOCK, RISING)]
#[case(Rule::LongerLeaseSeeds, NEIGHBOURS_CLOCK, RISING)]
#[case(Rule::NeighbourIsNotAhead, NEIGHBOURS, NEAR)]
#[case(Rule::NeighbourIsNotAhead, NEIGHBOURS, RISING)]
#[case(Rule::NeighbourIsNotLowered, NEIGHBOURS, RISING)]
#[case(Rule::NeighbourIsCompared, NEIGHBOURS, RISING)]
#[case(Rule::NeighbourIsComparedWithTime, NEIGHBOURS, NEEDED)]
#[case(Rule::ReservesOneIfAhead, HAND_OFFS, RISING)]
#[case(Rule::ReservesOncePerScript, HAND_OFFS, RISING)]
fn each_rule_is_missed_without_it(
    #[case] rule: Rule,
    #[case] world: World,
    #[case] property: &'static str,
) {
    let world = World { rules: Rules { without: Some(rule) }, ..world };
    assert!(breaks(world, property), "{rule:?}");
}

/// The one exception that [`RISING`] makes.
#[test]
fn a_lock_lost_between_two_parts_gets_a_late_token() {
    assert!(breaks(FLUSH, RISING_IN_PARTS));
}

/// Only until the next call asks for a lock of the slot.
#[test]
fn a_call_given_up_can_leave_an_endless_counter() {
    let found = visit(GIVING_UP);
    found.assert_any_discovery(ENDING);
    for property in [RISING, NEAR, NEEDED] {
        found.assert_no_discovery(property);
    }
}

/// The counter may be over when the clock is set back, although the lease of the handed-off lock is a long one.
#[test]
fn a_hand_off_lengthens_no_ttl() {
    let budget = Budget { tries: 2, hand_offs: 1, ..CLOCK.budget };
    assert!(breaks(World { budget, ..CLOCK }, RISING));
}

/// What remains behind a proxy that keeps a connection over a failover. If the promoted server has missed only what
/// came after the connection's last count, that counts on, and gives tokens again that went to other connections
/// since, or that a script handed off since. A counter that shows less is seeded. Seeding a neighbour is such a count.
#[rstest]
#[case::of_other_connections(FAILOVER)]
#[case::handed_off(World { budget: Budget { tries: 2, hand_offs: 1, ..FAILOVER.budget }, ..FAILOVER })]
#[case::of_a_neighbour(near(FAILOVER, 3, 0))]
fn a_proxied_failover_repeats_unseen_tokens_only(#[case] world: World) {
    let world = World { is_proxied: true, ..world };
    let found = visit(world);
    found.assert_any_discovery(RISING);
    for property in [RISING_AS_SEEN, NEAR, ENDING, NEEDED] {
        found.assert_no_discovery(property);
    }
    let world = World { rules: Rules { without: Some(Rule::CountIsCompared) }, ..world };
    assert!(breaks(world, RISING_AS_SEEN));
}

const FLUSH: World = world(Budget { flushes: 1, ..ORDINARY });
const DELETION: World = world(Budget { deletions: 1, ..ORDINARY });
const HAND_OFFS: World = world(Budget { tries: 1, hand_offs: 3, flushes: 1, ..ORDINARY });
const FAILOVER: World = world(Budget { hand_offs: 0, failovers: 1, ..ORDINARY });
const RECONNECTION: World = world(Budget { tries: 2, reconnections: 1, ..ORDINARY });
const GIVING_UP: World = world(Budget { tries: 2, given_up: 1, flushes: 1, ..ORDINARY });
const EXPIRY: World = World { lives: [SHORT; 2], ..world(Budget { sleeps: 2, ..ORDINARY }) };
const NEIGHBOURS: World = near(FLUSH, 2, 1);
const NEIGHBOURS_CLOCK: World = near(CLOCK, 3, 0);
const CLOCK: World = World {
    lives: [LONG, SHORT],
    ..world(Budget { hand_offs: 0, sleeps: 2, clock_steps: 1, ..ORDINARY })
};

/// Nothing is lost.
const ORDINARY: Budget = Budget {
    tries: 3,
    hand_offs: 1,
    reconnections: 0,
    given_up: 0,
    flushes: 0,
    deletions: 0,
    failovers: 0,
    sleeps: 0,
    clock_steps: 0,
};

const fn world(budget: Budget) -> World {
    World { rules: Rules::ALL, is_proxied: false, slots: [0, 0], lives: [LONG; 2], budget }
}

/// The locks have two counters, each of which is seeded with the other.
const fn near(world: World, tries: u8, hand_offs: u8) -> World {
    World { slots: [0, 1], budget: Budget { tries, hand_offs, ..world.budget }, ..world }
}
