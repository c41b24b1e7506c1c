//! What the command line asks for.

use std::time::Duration;

use lockable_benches::worker::Flavour;

use crate::case::Case;

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
    pub(crate) contenders: String,
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
        contenders: text("--contenders"),
        cases: text("--cases"),
        flavours: text("--runtimes"),
    })
}

impl Arguments {
    pub(crate) fn includes_flavour(&self, flavour: Flavour) -> bool {
        flavour.name().contains(&self.flavours)
    }

    pub(crate) fn includes_case(&self, case: &Case) -> bool {
        case.name().contains(&self.cases)
    }
}

/// About five minutes.
const FULL: Pace =
    Pace { rounds: 5, time: Duration::from_millis(600), first: 20_000, warm_up: 100_000 };

/// Under a minute.
const QUICK: Pace =
    Pace { rounds: 2, time: Duration::from_millis(200), first: 2_000, warm_up: 40_000 };
