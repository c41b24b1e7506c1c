//! The rounds of a case, and the results of a contender in them.

use crate::arguments::Arguments;
use crate::case::Case;
use crate::contender::{Contender, Launcher};
use crate::entrant::Entrant;
use crate::figures::{Column, Figures};

/// A round each.
pub(crate) struct Row {
    pub(crate) contender: Contender,
    rounds: Vec<Figures>,
}

/// Every contender has a round in turn, and another one is the first each time.
///
/// # Panics
/// When a process of theirs is gone.
pub(crate) fn measure(case: &Case, launchers: &[Launcher], arguments: &Arguments) -> Vec<Row> {
    let (pace, cores) = (arguments.pace, arguments.cores(case));
    let entrants = launchers.iter().map(|launcher| Entrant::start(*case, launcher, pace, cores));
    let mut entrants: Vec<Entrant<'_>> = entrants.collect();
    let empty = |launcher: &Launcher| Row { contender: launcher.contender, rounds: Vec::new() };
    let mut rows: Vec<Row> = launchers.iter().map(empty).collect();
    for round in 0..arguments.rounds(case) {
        for place in 0..rows.len() {
            let which = (round + place) % rows.len();
            rows[which].rounds.push(entrants[which].round());
        }
    }
    rows
}

impl Row {
    pub(crate) fn column(&self, column: Column) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(move |figures| figures.get(column))
    }

    /// The ratios, round by round.
    pub(crate) fn over(&self, other: &Self, column: Column) -> Vec<f64> {
        let both = self.column(column).zip(other.column(column));
        both.map(|(ours, theirs)| ours / theirs).collect()
    }
}

pub(crate) fn row(rows: &[Row], contender: Contender) -> Option<&Row> {
    rows.iter().find(|row| row.contender == contender)
}
