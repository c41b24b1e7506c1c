//! The contenders, and whose turn it is.

use lockable_benches::worker::Flavour;

use crate::arguments::{Arguments, Pace};
use crate::case::Case;
use crate::contender::Contender;
use crate::entrant::Entrant;
use crate::figures::{Column, Figures};

/// Everything that runs on one kind of runtime.
pub(crate) struct Runner {
    pace: Pace,
    entrants: Vec<Entrant>,
}

/// The results of a contender in a case, a round each.
pub(crate) struct Row {
    pub(crate) contender: Contender,
    pub(crate) rounds: Vec<Figures>,
}

impl Runner {
    /// A contender that cannot be had is left out with a note.
    pub(crate) fn new(flavour: Flavour, arguments: &Arguments) -> Self {
        let pace = arguments.pace;
        let all = Contender::ALL.into_iter();
        let entrants = all.filter(|one| one.name().contains(&arguments.contenders));
        let entrants = entrants.filter_map(|contender| {
            let launcher = contender.launcher(flavour);
            let entrant = launcher.and_then(|launcher| Entrant::start(contender, launcher, pace));
            let note = |why| println!("note: {} is left out: {why}", contender.name());
            entrant.map_err(note).ok()
        });
        Self { pace, entrants: entrants.collect() }
    }

    /// Another one is the first each time. A process that is gone ends the bench.
    pub(crate) fn rows(&mut self, case: &Case) -> Vec<Row> {
        eprintln!("{}", case.name());
        let row = |entrant: &Entrant| Row { contender: entrant.contender, rounds: Vec::new() };
        let mut rows: Vec<Row> = self.entrants.iter().map(row).collect();
        for entrant in &mut self.entrants {
            entrant.warm_up(case).expect(entrant.contender.name());
        }
        for round in 0..self.pace.rounds {
            for place in 0..rows.len() {
                let which = (round + place) % rows.len();
                let entrant = &mut self.entrants[which];
                let figures = entrant.round(case).expect(entrant.contender.name());
                rows[which].rounds.push(figures);
            }
        }
        rows
    }
}

impl Row {
    pub(crate) fn column(&self, column: Column) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(move |figures| figures.get(column))
    }

    /// The same round of both, round by round.
    pub(crate) fn over(&self, other: &Self, column: Column) -> Vec<f64> {
        let both = self.column(column).zip(other.column(column));
        both.map(|(ours, theirs)| ours / theirs).collect()
    }
}

pub(crate) fn row(rows: &[Row], contender: Contender) -> Option<&Row> {
    rows.iter().find(|row| row.contender == contender)
}
