//! What the command line asks for.

use std::time::Duration;

use lockable_benches::Cores;
use lockable_benches::worker::Flavour;

use crate::case::{self, Case};
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
    /// How many pairs there are before a steady state is measured.
    pub(crate) warm_up: usize,
}

pub(crate) fn read() -> Task {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1..)
    };
    if let Some([name, flavour, url, ..]) = after("--worker") {
        let flavour = Flavour::of(flavour).expect("a kind of runtime");
        return Task::Work { name: name.clone(), flavour, url: url.clone() };
    }
    let text = |flag: &str| after(flag).and_then(<[_]>::first).cloned().unwrap_or_default();
    Task::Measure(Arguments {
        pace: if after("--quick").is_some() { QUICK } else { FULL },
        cores: if after("--any-core").is_some() { Cores::Any } else { Cores::apart() },
        contenders: text("--contenders"),
        cases: text("--cases"),
        flavours: text("--runtimes"),
    })
}

impl Arguments {
    pub(crate) fn contenders(&self) -> impl Iterator<Item = Contender> {
        Contender::ALL.into_iter().filter(|one| one.name().contains(&self.contenders))
    }

    pub(crate) fn cases(&self) -> impl Iterator<Item = Case> {
        let cases = case::all().into_iter().filter(|case| case.name().contains(&self.cases));
        cases.filter(|case| case.flavour.name().contains(&self.flavours))
    }

    /// A core for the server and another one for the process, where that has no use for more.
    pub(crate) fn cores(&self, case: &Case) -> Cores {
        match case.flavour {
            Flavour::MultiThread if case.tasks > 1 => Cores::Any,
            Flavour::MultiThread | Flavour::CurrentThread => self.cores,
        }
    }
}

/// About four minutes.
const FULL: Pace =
    Pace { rounds: 5, time: Duration::from_millis(600), first: 20_000, warm_up: 100_000 };

/// Under a minute.
const QUICK: Pace =
    Pace { rounds: 2, time: Duration::from_millis(200), first: 2_000, warm_up: 40_000 };
