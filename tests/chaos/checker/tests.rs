//! The checker is shown a history with each violation, and the same without it.

use super::judge;
use crate::history::History;

/// A second, and as many milliseconds.
fn at(millis: u64) -> u64 {
    (1_000 + millis) * 1_000_000
}

fn violations(lines: &[String]) -> Vec<String> {
    let mut history = History::default();
    history.read(&lines.join("\n"));
    judge(&history.merged()).violations
}

#[track_caller]
fn assert_found(lines: &[String], start: &str) {
    let found = violations(lines);
    assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
}

fn hold(pid: u32, token: u64, begin: u64, end: u64) -> String {
    format!("hold {pid} k {token} {} {} {} 0 -", at(end), at(begin), at(end))
}

/// A look at a lock of owner `o`.
fn look(token: u64, begin: u64, end: u64, deadline: u64) -> String {
    format!("hold 1 k {token} {} {} {} 0 o", at(deadline), at(begin), at(end))
}

/// It is felt no longer than it lasts, and has harmed the locks whose tokens are not above `lost`.
fn fault(kind: &str, begin: u64, end: u64, lost: &str) -> String {
    format!("fault {kind} {} {} {} {lost}", at(begin), at(end), at(end))
}

fn effect(token: u64, place: u64, moment: u64, belief: &str) -> String {
    format!("effect k {token} {place} {} {belief}", at(moment))
}

/// What the server has at the key, every 100 ms.
fn samples(begin: u64, end: u64, owner: &str) -> impl Iterator<Item = String> {
    let moments = (begin..=end).step_by(100);
    moments.map(move |moment| sample(moment, owner, 60_000))
}

fn sample(moment: u64, owner: &str, ttl: u64) -> String {
    format!("sample k {} {} {owner} {ttl}", at(moment), at(moment))
}

/// Another lock, which is served every 10 ms.
fn work(begin: u64, end: u64) -> impl Iterator<Item = String> {
    (begin..end).step_by(10).map(|moment| {
        let (begin, end) = (at(moment), at(moment + 1));
        format!("hold 9 other {} {end} {begin} {end} 0 -", moment + 1)
    })
}

fn wait(pid: u32, begin: u64, end: u64) -> String {
    let end = if end == 0 { 0 } else { at(end) };
    format!("wait {pid} 1 k {} {end}", at(begin))
}

#[test]
fn one_after_the_other_is_no_violation() {
    let lines = [hold(1, 5, 0, 10), hold(2, 6, 11, 20), hold(1, 7, 21, 30), hold(1, 9, 31, 40)];
    let mut history = History::default();
    history.read(&lines.join("\n"));
    let verdict = judge(&history.merged());
    assert_eq!(verdict.violations, [""; 0]);
    assert_eq!((verdict.holds, verdict.passes, verdict.hand_offs), (4, 1, 2));
}

#[test]
fn two_holders_at_once_are_found() {
    assert_found(&[hold(1, 5, 0, 10), hold(2, 6, 9, 20)], "two held one lock");
    // The first one holds it still when the third one begins.
    let lines = [hold(1, 5, 0, 90), hold(2, 6, 91, 92), hold(3, 7, 89, 90)];
    assert!(!violations(&lines).is_empty());
}

#[test]
fn two_holders_at_once_are_excused_in_a_window_alone() {
    let overlap = [hold(1, 5, 3_000, 3_100), hold(2, 6, 3_050, 3_200)];
    let with = |fault| [&overlap[..], &[fault]].concat();
    assert_eq!(violations(&with(fault("restart", 1_200, 1_300, "9"))), [""; 0]);
    assert_found(&with(fault("restart", 1_000, 1_050, "9")), "two held one lock");
    assert_found(&with(fault("cut", 2_900, 3_000, "-")), "two held one lock");
    assert_found(&with(fault("restart", 3_060, 3_070, "9")), "two held one lock");
}

#[test]
fn two_holders_of_locks_from_after_the_fault_are_found_in_its_window_too() {
    let overlap = [hold(1, 10, 3_000, 3_100), hold(2, 11, 3_050, 3_200)];
    let with = |lost| [&overlap[..], &[fault("failover", 1_200, 1_300, lost)]].concat();
    assert_eq!(violations(&with("10")), [""; 0]);
    assert_found(&with("9"), "two held one lock");
}

#[test]
fn a_holder_that_counts_on_a_lock_for_too_long_is_found() {
    let with = |lines: &[String]| [&[look(5, 0, 10, 100), look(5, 0, 50, 100)], lines].concat();
    assert_eq!(violations(&with(&[sample(10, "o", 88), sample(20, "o", 80)])), [""; 0]);
    assert_found(&with(&[sample(20, "o", 77)]), "a holder counts on a lock for too long");
    assert_found(&with(&[sample(49, "p", 900)]), "a holder counts on a lock for too long");
    assert_found(&with(&[sample(49, "-", 0)]), "a holder counts on a lock for too long");
    // It has not looked since, and may have released it.
    assert_eq!(violations(&with(&[sample(51, "-", 0)])), [""; 0]);
    // What it counts on was given after that look.
    let renewed = [look(5, 0, 10, 50), sample(20, "o", 40), look(5, 0, 50, 100)];
    assert_eq!(violations(&renewed), [""; 0]);
    let lost = |lost| fault("restart", 5, 8, lost);
    assert_eq!(violations(&with(&[sample(49, "-", 0), lost("5")])), [""; 0]);
    assert_found(&with(&[sample(49, "-", 0), lost("4")]), "a holder counts on a lock for too long");
}

#[test]
fn a_process_that_ends_by_itself_is_found() {
    assert_found(&["ended 7".to_owned()], "process 7 ended");
}

#[test]
fn a_token_that_goes_back_is_found() {
    assert_found(&[hold(1, 6, 0, 10), hold(2, 5, 11, 20)], "the token went back");
}

#[test]
fn two_holds_with_one_token_are_found_in_a_window_too() {
    let window = fault("restart", 0, 10, "9");
    assert_found(&[hold(1, 5, 0, 10), hold(2, 5, 11, 20), window], "two holds have one token");
}

#[test]
fn a_run_that_is_repeated_is_found() {
    let done = format!("done k 5 {} {}", at(11), at(100));
    let with = |begin| [hold(1, 5, 0, 10), done.clone(), hold(2, 6, begin, 110)];
    assert_found(&with(99), "a run was repeated");
    assert_eq!(violations(&with(101)), [""; 0]);
    let window = |lost| fault("restart", 20, 30, lost);
    assert_eq!(violations(&[&with(99)[..], &[window("5")]].concat()), [""; 0]);
    assert_found(&[&with(99)[..], &[window("4")]].concat(), "a run was repeated");
}

#[test]
fn a_ticket_that_is_redeemed_twice_is_found() {
    let redeemed = |moment| format!("redeemed k 5 {}", at(moment));
    let passed = [hold(1, 5, 0, 10), redeemed(11), hold(2, 5, 11, 20)];
    assert_eq!(violations(&passed), [""; 0]);
    let twice = [&passed[..], &[redeemed(30)]].concat();
    assert_found(&twice, "a ticket was redeemed twice");
    assert_eq!(violations(&[&twice[..], &[fault("failover", 25, 28, "5")]].concat()), [""; 0]);
    // Its first holder must have ended.
    let lines = [hold(1, 5, 0, 10), redeemed(8), hold(2, 5, 9, 20)];
    assert_found(&lines, "two held one lock");
}

#[test]
fn a_resource_that_goes_back_is_found_in_a_window_too() {
    let window = fault("restart", 0, 10, "9");
    let lines = [effect(6, 1, 0, "held"), effect(5, 2, 1, "over"), window];
    assert_found(&lines, "the resource went back");
    // The places count, not the times at which the answers came.
    assert_eq!(violations(&[effect(5, 1, 1, "held"), effect(6, 2, 0, "held")]), [""; 0]);
}

#[test]
fn a_holder_that_the_resource_refuses_is_found() {
    assert_found(&[effect(6, 1, 0, "held"), effect(5, 0, 1, "held")], "the resource refused");
    assert_eq!(violations(&[effect(6, 1, 0, "held"), effect(5, 0, 1, "over")]), [""; 0]);
}

#[test]
fn a_poll_after_the_deadline_is_found() {
    let late = format!("hold 1 k 5 {} {} {} 1 -", at(5), at(0), at(5));
    assert_found(&[hold(1, 5, 0, 5), late], "a poll began after");
}

#[test]
fn a_free_lock_beside_a_waiter_is_found_once_it_is_calm() {
    let with = |lines: &[String]| {
        let looks: Vec<_> = samples(0, 2_500, "-").chain(work(0, 2_500)).collect();
        [&looks[..], lines].concat()
    };
    assert_found(&with(&[wait(1, 0, 0)]), "a free lock and a waiter");
    assert_found(&with(&[wait(1, 0, 2_600)]), "a free lock and a waiter");
    assert_eq!(violations(&with(&[wait(1, 0, 1_900)])), [""; 0]);
    assert_eq!(violations(&with(&[wait(1, 1_000, 0)])), [""; 0]);
    assert_eq!(violations(&with(&[wait(1, 0, 0), fault("cut", 900, 1_000, "-")])), [""; 0]);
    let gone = format!("gone 1 {}", at(1_000));
    assert_eq!(violations(&with(&[wait(1, 0, 0), gone])), [""; 0]);
    let taken: Vec<_> = samples(0, 1_000, "-").chain(samples(1_100, 1_100, "a")).collect();
    let later: Vec<_> = samples(1_200, 3_000, "-").chain(work(0, 3_000)).collect();
    assert_eq!(violations(&[&taken[..], &later, &[wait(1, 0, 0)]].concat()), [""; 0]);
}

#[test]
fn where_no_one_is_served_no_time_passes() {
    for owner in ["-", "a"] {
        let until = |end| -> Vec<_> { samples(0, 2_900, owner).chain(work(0, end)).collect() };
        let with = |end| [&until(end)[..], &[wait(1, 0, 0)]].concat();
        assert_eq!(violations(&with(1_100)), [""; 0]);
        assert_eq!(violations(&with(2_900)).len(), 1);
    }
}

#[test]
fn a_lock_without_a_holder_is_found_where_nothing_was_cut() {
    let with = |lines: &[String]| {
        let looks: Vec<_> = samples(0, 2_900, "a").chain(work(0, 2_900)).collect();
        [&looks[..], lines].concat()
    };
    assert_found(&with(&[]), "a lock without a holder");
    assert_eq!(violations(&with(&[hold(1, 5, 100, 200)])), [""; 0]);
    assert_eq!(violations(&with(&[fault("cut", 100, 200, "-")])), [""; 0]);
    let two = samples(0, 1_500, "a").chain(samples(1_600, 3_000, "b")).chain(work(0, 3_000));
    assert_eq!(violations(&two.collect::<Vec<_>>()), [""; 0]);
    let part = format!("part 1 1 k {} 0", at(500));
    assert_eq!(violations(&with(&[part])), [""; 0]);
}

#[test]
fn what_is_left_at_the_end_is_found() {
    assert_found(&["left -1 lockable:queue:{k}".to_owned()], "a key without an end");
    assert_eq!(violations(&["left 500 lockable:fence:{k}".to_owned()]), [""; 0]);
    let sizes = |end: &str| ["size multi begin 3 5 20000".to_owned(), format!("size multi {end}")];
    assert_eq!(violations(&sizes("end 6 8 24000")), [""; 0]);
    assert_found(&sizes("end 7 5 20000"), "the connections grew");
    assert_found(&sizes("end 3 9 20000"), "the tasks grew");
    assert_found(&sizes("end 3 5 25000"), "the memory grew");
}

#[test]
fn a_run_with_too_little_in_it_is_named() {
    let mut history = History::default();
    let faults: Vec<_> =
        (0..20).map(|number| fault("cut", number * 100, number * 100, "-")).collect();
    history.read(&faults.join("\n"));
    history.read(&format!("span {} {}", at(0), at(2_000)));
    let verdict = judge(&history.merged());
    let short = verdict.shortfalls(&["cut", "stop"]);
    let calls =
        ["0 hand-offs", "0 losses", "0 passes", "0 redemptions", "0 runs", "0 stop", "0 terms"];
    assert_eq!(short, calls);
}

#[test]
fn the_part_outside_of_windows_is_measured() {
    let mut history = History::default();
    history.read(&fault("restart", 0, 2_000, "9"));
    history.read(&format!("span {} {}", at(0), at(10_000)));
    assert_eq!(judge(&history.merged()).outside, 60);
}
