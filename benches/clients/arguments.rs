//! What the command line asks for.

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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1..)
    };
    if let Some([url, concerned, others, ..]) = after("--worker") {
        return Task::Work { url: url.clone(), tags: [concerned.clone(), others.clone()] };
    }
    let only = after("--only").and_then(<[_]>::first).cloned().unwrap_or_default();
    let pace = if after("--quick").is_some() { Pace::Quick } else { Pace::Full };
    Task::Tables(Selection { only, pace })
}
