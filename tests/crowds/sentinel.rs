//! Renewed locks, and calls that wait for others, over a failover. How long lines pause then is in
//! `tests/timings/failovers.rs`.

use std::sync::Arc;

use lockable_tests::sections::is_clean;
use lockable_tests::wait::HANG;
use lockable_tests::{Sections, Sentinels, wait};

use crate::alone;
use crate::load::{Crowd, LONG, Load, What};

#[test]
fn a_killed_primary_costs_no_lease() {
    alone(async {
        let group = Sentinels::start();
        let load = Load::start(&group.url(), CROWD).await;
        let mut switches = group.switches();
        let before = group.kill_primary();
        switches.next().await;
        load.each_line_moves().await;
        ended(load).await.assert_sound();
        is_clean(group.other_than(before)).await;
    });
}

/// The old primary serves for about a second beside the new one. What it grants then is lost, and its holder
/// learns of that when the switch is announced, about when another may acquire the lock.
#[test]
fn a_planned_failover_costs_no_lease() {
    alone(async {
        let group = Sentinels::builder().at_usual_periods().start();
        let load = Load::start(&group.url(), CROWD).await;
        let mut switches = group.switches();
        let before = group.primary();
        load.sections.fails_over();
        group.start_failover();
        switches.next().await;
        let served = || before.admin().command_calls("evalsha");
        // A process may learn of the switch late, but then leaves the old primary for good.
        wait::until_async(HANG, async || {
            let earlier = served();
            load.each_line_moves().await;
            served() == earlier
        })
        .await;
        ended(load).await.assert_sound_but_for_lost_grants();
        is_clean(group.other_than(before)).await;
    });
}

const CROWD: Crowd = Crowd { holders: 32, lease: LONG, waiters: 224, lines: 14, tasks: 0 };

/// No renewed lock was lost, and no call waited in vain.
async fn ended(load: Load) -> Arc<Sections> {
    let (sections, mut faults) = load.end().await;
    faults.retain(|fault| [What::Lost, What::Refused].contains(&fault.what));
    assert_eq!(faults, []);
    sections
}
