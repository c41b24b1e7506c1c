//! A hundred renewed locks, and a thousand calls that wait for twenty others, over a failover.

use std::time::Duration;

use lockable_tests::{Pace, Sentinels};

use super::load::Load;
use super::support::{SOON, is_clean};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_primary_costs_no_lease_and_little_waiting() {
    let group = Sentinels::start();
    let load = Load::start(&group.url()).await;
    let mut switches = group.switches();
    let before = group.kill_primary();
    switches.next().await;
    let pace = Pace::start();
    load.each_line_moves().await;
    let first = pace.elapsed();
    // The first ones may have been served before the switch, and have ended after it.
    load.each_line_moves().await;
    println!("every line moves {first:?} after the switch, and again after {:?}", pace.elapsed());
    assert!(pace.elapsed() <= SOON, "{:?}", pace.elapsed());
    assert_sound(load).await;
    is_clean(group.other_than(before)).await;
}

/// The old primary serves for about a second beside the new one, and what it does then is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_planned_failover_costs_no_lease_and_no_pause() {
    let group = Sentinels::builder().at_usual_periods().start();
    let load = Load::start(&group.url()).await;
    let mut switches = group.switches();
    let before = group.primary();
    load.sections.take_longest_pause();
    group.start_failover();
    switches.next().await;
    let until = load.sections.take_longest_pause();
    for _ in 0..3 {
        load.each_line_moves().await;
    }
    let after = load.sections.take_longest_pause();
    let served = before.admin().command_calls("evalsha");
    load.each_line_moves().await;
    assert_eq!(before.admin().command_calls("evalsha"), served, "the old primary is still used");
    println!("longest pause {until:?} until the switch and {after:?} after it");
    assert!(until.max(after) < MOST, "{until:?} {after:?}");
    assert_sound(load).await;
    is_clean(group.other_than(before)).await;
}

/// The longest time in which none of the calls is served.
const MOST: Duration = Duration::from_millis(500);

/// No renewed lock was lost, no call waited in vain, no two held one lock, and tokens rose.
async fn assert_sound(load: Load) {
    let sections = load.sections.clone();
    let faults = load.end().await;
    println!("{} sections, {}", sections.finished(), faults.counts());
    assert_eq!((&faults.lost, &faults.refused), (&vec![], &vec![]));
    sections.assert_sound();
}
