//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use lockable_benches::worker::Flavour;
use lockable_benches::{CommandLine, Cores};

use crate::case::{self, Case, Keys};
use crate::contender::Contender;

/// What this process is for.
pub(crate) enum Task {
    /// One of the processes that lock: `--worker <name> <kind of runtime> <url>`, which only this bench
    /// itself says.
    Work {
        name: String,
        flavour: Flavour,
        url: String,
    },
    Measure(Arguments),
}

/// What takes part is that whose name contains the text, which is everything where there is none.
pub(crate) struct Arguments {
    pub(crate) pace: Pace,
    /// This bench as another commit has it.
    pub(crate) before: Option<PathBuf>,
    cores: Cores,
    contenders: String,
    cases: String,
    flavours: String,
}

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    /// What a round takes where its number of pairs is not fixed.
    pub(crate) time: Duration,
    /// The pairs of a new connection.
    pub(crate) first: usize,
    /// Fewer than of the others, because they take longer.
    pub(crate) first_rounds: usize,
    /// How many pairs there are before a steady state is measured.
    pub(crate) warm_up: usize,
}

pub(crate) fn read() -> Task {
    let switches = ["--quick", "--any-core"];
    let options = ["--before", "--contenders", "--cases", "--runtimes"];
    let typed = CommandLine::read(&switches, &options);
    if let Some([name, flavour, url, ..]) = typed.after("--worker") {
        let flavour = Flavour::of(flavour).expect("a kind of runtime");
        return Task::Work { name: name.clone(), flavour, url: url.clone() };
    }
    Task::Measure(Arguments {
        pace: if typed.has("--quick") { QUICK } else { FULL },
        cores: if typed.has("--any-core") { Cores::Any } else { Cores::apart() },
        before: typed.path("--before"),
        contenders: typed.part_of_name("--contenders"),
        cases: typed.part_of_name("--cases"),
        flavours: typed.part_of_name("--runtimes"),
    })
}

impl Arguments {
    pub(crate) fn contenders(&self) -> impl Iterator<Item = Contender> {
        let takes_part = |one: &Contender| *one != Contender::Before || self.before.is_some();
        let all = Contender::ALL.into_iter().filter(takes_part);
        all.filter(|one| one.name().contains(&self.contenders))
    }

    pub(crate) fn cases(&self) -> impl Iterator<Item = Case> {
        let cases = case::all().into_iter().filter(|case| case.name().contains(&self.cases));
        cases.filter(|case| case.flavour.name().contains(&self.flavours))
    }

    pub(crate) fn rounds(&self, case: &Case) -> usize {
        if case.keys == Keys::First { self.pace.first_rounds } else { self.pace.rounds }
    }

    /// A core for the server and another one for the process, where that has no use for more.
    pub(crate) fn cores(&self, case: &Case) -> Cores {
        match case.flavour {
            Flavour::MultiThread if case.tasks > 1 => Cores::Any,
            Flavour::MultiThread | Flavour::CurrentThread => self.cores,
        }
    }
}

/// About five minutes. What disturbs a machine comes and goes within seconds, so turns are shorter.
const FULL: Pace = Pace {
    rounds: 25,
    time: Duration::from_millis(120),
    first: 20_000,
    first_rounds: 5,
    warm_up: 100_000,
};

/// Under a minute.
const QUICK: Pace = Pace {
    rounds: 4,
    time: Duration::from_millis(100),
    first: 2_000,
    first_rounds: 2,
    warm_up: 40_000,
};
