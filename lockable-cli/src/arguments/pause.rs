//! The arguments of the commands that keep a lock taken, and give it back.

use clap::Args;

use super::Span;
use super::help::{examples, guide};

/// Keeps a lock taken for a time, without a process that holds it: nothing runs under it meanwhile.
///
/// It waits in the lock's queue as any other, so it ends no work; with --now it asks the holder to stop, and is the next
/// one. The pause outlives this command. `ls`, `show` and the errors of calls that find the lock busy show until when
/// it is paused, and why. A pause is of one lock, or of all permits of a key.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_PAUSE), after_help = guide(REASON, "maintenance/"))]
pub(crate) struct Pause {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
    /// Takes KEY for a lock's key also where it could be a pattern.
    #[arg(long)]
    pub(crate) exact: bool,
    /// How long the lock is paused from when it is, at most 24h.
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) length: Span,
    /// Why, in one line, for all who find the lock busy.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Asks the holder to stop, and comes before all that wait.
    #[arg(long)]
    pub(crate) now: bool,
    /// With --now, how long to wait until the holder has stopped.
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "now")]
    pub(crate) grace: Span,
    /// How long to wait for the lock at most [default: without a limit].
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<Span>,
    /// Pauses all permits of KEY, of which there are N.
    #[arg(long, value_name = "N")]
    pub(crate) permits: Option<u32>,
}

/// Ends the pause of a lock, or of all permits of a key: the first that waits has it then.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_RESUME), after_help = guide("", "maintenance/"))]
pub(crate) struct Resume {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
}

const OF_PAUSE: [&str; 2] = [
    "lockable pause imports --for 30m --reason 'deploy 42'",
    "lockable pause export --permits 3 --for 2h --now",
];

const OF_RESUME: [&str; 2] = ["lockable resume imports", "lockable resume export --json"];

const REASON: &str = "\
The reason is stored as plain text, where all who may read the lock can read it, and it is
logged by those who find the lock busy: write no secret there.";
