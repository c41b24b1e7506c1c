//! What the command line asks for.

use std::path::PathBuf;
use std::time::Duration;

use lockable_benches::{CommandLine, Cores};

/// What this process is for.
pub(crate) enum Task {
    /// One of the processes that lock: `--worker <name> <url>`, which only this bench itself says.
    Work {
        name: String,
        url: String,
    },
    Tables(Pace, Cores, Selection),
    Plot(PathBuf, Pace, Cores, Selection),
}

/// What takes part: that whose name contains the text, which is everything where there is none.
pub(crate) struct Selection {
    pub(crate) scenarios: String,
    pub(crate) contenders: String,
}

/// How much is measured.
pub(crate) struct Pace {
    pub(crate) turns: usize,
    /// From the order to the common start: time enough for every process to make its waiters.
    pub(crate) lead: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

pub(crate) fn read() -> Task {
    let switches = ["--quick", "--any-core"];
    let typed = CommandLine::read(&switches, &["--scenarios", "--contenders", "--plot"]);
    if let Some([name, url, ..]) = typed.after("--worker") {
        return Task::Work { name: name.clone(), url: url.clone() };
    }
    let pace = if typed.has("--quick") { QUICK } else { FULL };
    let cores = if typed.has("--any-core") { Cores::Any } else { Cores::apart() };
    let selection = Selection {
        scenarios: typed.part_of_name("--scenarios"),
        contenders: typed.part_of_name("--contenders"),
    };
    match typed.path("--plot") {
        Some(file) => Task::Plot(file, pace, cores, selection),
        None => Task::Tables(pace, cores, selection),
    }
}

/// About fifteen minutes.
const FULL: Pace = Pace {
    turns: 5,
    lead: Duration::from_millis(30),
    warm_up: Duration::from_millis(500),
    window: Duration::from_millis(1_200),
};

/// Under two minutes.
const QUICK: Pace = Pace {
    turns: 2,
    lead: Duration::from_millis(30),
    warm_up: Duration::from_millis(150),
    window: Duration::from_millis(350),
};
