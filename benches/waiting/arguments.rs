//! What the command line asks for.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// Where the server and the processes that lock run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Where the system puts them.
    Any,
    /// The server has the first one, and all other processes the rest.
    Apart,
}

impl Cores {
    /// Apart, if that is possible: on a virtual machine a `PING` within a core may take a fifth of one
    /// between two, and the system changes its mind about where to put whom from second to second.
    fn apart() -> Self {
        let mut taskset = Command::new("taskset");
        taskset.args(["--cpu-list", "0,1", "true"]).stderr(Stdio::null());
        if taskset.status().is_ok_and(|status| status.success()) {
            return Self::Apart;
        }
        println!("note: no `taskset` or no second core here, so the server shares its core");
        Self::Any
    }
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1..)
    };
    if let Some([name, url, ..]) = after("--worker") {
        return Task::Work { name: name.clone(), url: url.clone() };
    }
    let pace = if after("--quick").is_some() { QUICK } else { FULL };
    let cores = if after("--any-core").is_some() { Cores::Any } else { Cores::apart() };
    let text = |flag: &str| after(flag).and_then(<[_]>::first).cloned().unwrap_or_default();
    let selection = Selection { scenarios: text("--scenarios"), contenders: text("--contenders") };
    match after("--plot") {
        Some([file, ..]) => Task::Plot(from_root(file), pace, cores, selection),
        _ => Task::Tables(pace, cores, selection),
    }
}

/// Cargo runs a bench in the folder of its package, and a path is typed in the workspace's.
fn from_root(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// Under fifteen minutes.
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
