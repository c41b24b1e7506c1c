//! What ours has to reach.

use lockable_benches::worker::Flavour;
use lockable_benches::{Bound, median};

use crate::case::{Case, Keys};
use crate::contender::Contender;
use crate::figures::Column;
use crate::row::{Row, row};

/// The goals of a case, each with its result.
pub(crate) fn print(case: &Case, rows: &[Row]) {
    if case.keys == Keys::Few {
        return;
    }
    println!("\nGoals:\n");
    for (column, what, bound) in goals(case) {
        let result = over(rows, Contender::Bare, column);
        let verdict = result.map(|result| bound.verdict(median(result)));
        println!("- {what} over bare {bound}: {}", verdict.as_deref().unwrap_or(MISSING));
    }
    if case.tasks > 1 {
        print_ahead(rows);
    }
}

fn goals(case: &Case) -> Vec<(Column, &'static str, Bound)> {
    let rate = match (case.tasks, case.flavour) {
        (1, _) => 0.95,
        (_, Flavour::CurrentThread) => 0.8,
        (_, Flavour::MultiThread) => 0.75,
    };
    let rate = (Column::PerSecond, "pairs/s", Bound::AtLeast(rate));
    if case.tasks == 1 {
        return vec![rate, (Column::AcquireP50, "acquire p50", Bound::AtMost(1.1))];
    }
    vec![
        rate,
        (Column::PairP99, "p99 of a pair", Bound::AtMost(1.5)),
        (Column::ClientCpu, "client CPU", Bound::AtMost(1.4)),
        (Column::ServerCpu, "server CPU", Bound::AtMost(1.5)),
    ]
}

/// In the median and in four rounds of five.
fn print_ahead(rows: &[Row]) {
    let Some(ratios) = over(rows, Contender::Rslock, Column::PerSecond) else {
        return println!("- ahead of rslock: {MISSING}");
    };
    let (rounds, ahead) = (ratios.len(), ratios.iter().filter(|ratio| **ratio > 1.0).count());
    let middle = Bound::AtLeast(1.0).verdict(median(ratios));
    let verdict = if ahead * 5 >= rounds * 4 { "pass" } else { "**miss**" };
    println!("- pairs/s over rslock at least 1: {middle}");
    println!("- rounds ahead of rslock at least four of five: {ahead} of {rounds}, {verdict}");
}

fn over(rows: &[Row], contender: Contender, column: Column) -> Option<Vec<f64>> {
    Some(row(rows, Contender::Ours)?.over(row(rows, contender)?, column))
}

const MISSING: &str = "not measured";
