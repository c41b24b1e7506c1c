//! The table of a scenario, and a sentence about each of its rows.

use std::time::Duration;

use lockable_benches::three_digits;

use crate::contender::Contender;
use crate::outcome::Outcome;
use crate::run::run;
use crate::scenario::{Event, Pace, Scenario};

/// Runs the contenders one after the other, and prints each row as soon as it is there.
pub(crate) fn print(scenario: Scenario, contenders: &[Contender], pace: Pace) {
    let event = scenario.event;
    println!("\n### {}\n\n{}", scenario.name(), header(event));
    let mut sentences = Vec::new();
    for contender in contenders {
        let name = contender.name();
        match run(scenario, *contender, pace) {
            Ok(outcome) => {
                println!("| {name} | {} |", cells(event, &outcome).join(" | "));
                sentences.push(format!("- {name}: {}", sentence(event, &outcome)));
            }
            Err(error) => println!("| {name} | {error} | | | | | |"),
        }
    }
    println!("\n{}", sentences.join("\n"));
}

fn header(event: Event) -> String {
    let first = match event {
        Event::Steady => "pairs/s",
        Event::SlotMoves => "longest pause in the slot, s",
        Event::Hangs | Event::Killed | Event::Planned => "locks again after, s",
    };
    let rest =
        "servers well after, s | longest pause elsewhere, s | successes | errors | left held";
    format!("| contender | {first} | {rest} |\n|---|---|---|---|---|---|---|")
}

fn cells(event: Event, outcome: &Outcome) -> [String; 6] {
    let first = match (outcome.stood_still, event) {
        (Some(last), _) => format!("stood still after {} s", seconds(last)),
        (None, Event::Steady) => three_digits(rate(outcome)),
        (None, Event::SlotMoves) => outcome.longest_here.map_or_else(dash, seconds),
        (None, Event::Hangs | Event::Killed | Event::Planned) => {
            outcome.recovery.map_or_else(|| format!("not in {}", seconds(outcome.watched)), seconds)
        }
    };
    let well = if event == Event::Steady { dash() } else { seconds(outcome.servers_well) };
    let elsewhere = outcome.longest_elsewhere.map_or_else(dash, seconds);
    let counts = [outcome.successes, outcome.errors, outcome.left].map(|count| count.to_string());
    let [successes, errors, left] = counts;
    [first, well, elsewhere, successes, errors, left]
}

fn sentence(event: Event, outcome: &Outcome) -> String {
    let errors = match outcome.errors {
        0 => "no call failed".to_owned(),
        count => format!("{count} calls failed ({})", outcome.reasons),
    };
    let left = match outcome.left {
        0 => "no lock is held whose caller got an error".to_owned(),
        count => format!("{count} locks are held whose callers got an error"),
    };
    format!("{}; {errors}, and {left}.", what_happened(event, outcome))
}

fn what_happened(event: Event, outcome: &Outcome) -> String {
    let watched = seconds(outcome.watched);
    if let Some(last) = outcome.stood_still {
        let (last, well) = (seconds(last), seconds(outcome.servers_well));
        return format!(
            "its last success anywhere was {last} s after the event, the servers were well after {well} s, and it was \
             ended after {watched} s"
        );
    }
    match (event, outcome.recovery) {
        (Event::Steady, _) => format!("{} pairs in {watched} s", outcome.successes),
        (Event::SlotMoves, _) => {
            let longest = outcome.longest_here.map_or_else(dash, seconds);
            format!("at most {longest} s without a lock in the slot, which moved for 4 s")
        }
        (_, Some(recovery)) => {
            let (again, well) = (seconds(recovery), seconds(outcome.servers_well));
            format!(
                "locks again {again} s after the event, where the servers were well after {well} s"
            )
        }
        (_, None) => format!("no lock again within {watched} s where the event happened"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn rate(outcome: &Outcome) -> f64 {
    outcome.successes as f64 / Duration::from_millis(outcome.watched).as_secs_f64()
}

fn seconds(millis: u64) -> String {
    three_digits(Duration::from_millis(millis).as_secs_f64())
}

fn dash() -> String {
    "–".to_owned()
}
