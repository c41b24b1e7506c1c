//! What the command line asks for.

use lockable_benches::CommandLine;

use crate::contender::Contender;
use crate::scenario::{Pace, Scenario};

/// What this process is for.
pub(crate) enum Task {
    /// The process that locks: `--worker <url> <tags> <tags>`, which only this bench itself says.
    Work {
        url: String,
        tags: [String; 2],
    },
    Tables(Selection),
}

/// What takes part, and for how long.
pub(crate) struct Selection {
    only: String,
    pub(crate) pace: Pace,
}

impl Selection {
    /// Whether the name of a row has the text.
    pub(crate) fn has(&self, scenario: Scenario, contender: Contender) -> bool {
        format!("{}: {}", scenario.name(), contender.name()).contains(&self.only)
    }
}

pub(crate) fn read() -> Task {
    let typed = CommandLine::read(&["--quick"], &["--only"]);
    if let Some([url, concerned, others, ..]) = typed.after("--worker") {
        return Task::Work { url: url.clone(), tags: [concerned.clone(), others.clone()] };
    }
    let only = typed.part_of_name("--only");
    let pace = if typed.has("--quick") { Pace::Quick } else { Pace::Full };
    Task::Tables(Selection { only, pace })
}
