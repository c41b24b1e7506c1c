//! A hundred renewed locks, and a thousand calls that wait for twenty others, over a failover.

use std::sync::Arc;
use std::time::Duration;

use lockable_tests::sections::is_clean;
use lockable_tests::{Sections, Sentinels};

use crate::alone;
use crate::load::{Crowd, Load, What};

#[test]
fn a_killed_primary_costs_no_lease_and_little_waiting() {
    alone(async {
        let group = Sentinels::start();
        let load = Load::start(&group.url(), CROWD).await;
        let usual = load.usual_failover().await;
        let mut switches = group.switches();
        let before = group.kill_primary();
        switches.next().await;
        load.moves_after_a_failover(usual).await;
        ended(load).await.assert_sound();
        is_clean(group.other_than(before)).await;
    });
}

/// The old primary serves for about a second beside the new one. What it grants then is lost, and its holder
/// learns of that when the switch is announced, about when another may acquire the lock.
#[test]
fn a_planned_failover_costs_no_lease_and_no_pause() {
    alone(async {
        let group = Sentinels::builder().at_usual_periods().start();
        let load = Load::start(&group.url(), CROWD).await;
        let mut switches = group.switches();
        let before = group.primary();
        let usual = load.sections.take_longest_pause();
        load.sections.fails_over();
        group.start_failover();
        switches.next().await;
        let until = load.sections.take_longest_pause();
        for _ in 0..3 {
            load.each_line_moves().await;
        }
        let after = load.sections.take_longest_pause();
        let served = before.admin().command_calls("evalsha");
        load.each_line_moves().await;
        assert_eq!(
            before.admin().command_calls("evalsha"),
            served,
            "the old primary is still used"
        );
        println!("longest pause {until:?} until the switch, {after:?} after it, before {usual:?}");
        assert!(until.max(after) < MOST + 2 * usual, "{until:?} {after:?} {usual:?}");
        let sections = ended(load).await;
        sections.assert_sound_but_for_lost_grants();
        is_clean(group.other_than(before)).await;
    });
}

const CROWD: Crowd =
    Crowd { holders: 100, lease: Duration::from_secs(10), waiters: 1_000, lines: 20, tasks: 0 };

/// The longest time in which none of the calls is served, beside what is usual on this machine.
const MOST: Duration = Duration::from_millis(500);

/// No renewed lock was lost, and no call waited in vain.
async fn ended(load: Load) -> Arc<Sections> {
    let (sections, mut faults) = load.end().await;
    faults.retain(|fault| [What::Lost, What::Refused].contains(&fault.what));
    assert_eq!(faults, []);
    sections
}
