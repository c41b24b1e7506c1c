//! The arguments of the commands that look at locks and release them.

use std::path::PathBuf;

use clap::Args;
use lockable_runtime::admin::HolderId;

use super::Span;
use super::help::{examples, guide};

/// Lists the locks that are held, with their holders and how many processes wait.
///
/// The runs that `once` keeps as done have no holder: they are counted, and listed with --kind done. It scans all keys of the server at a throttled rate, and never with KEYS. Locks are printed in groups as they are
/// found; in each group the locks with the most waiters come first.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_LS), after_help = guide(WORDS, "incident/"))]
pub(crate) struct Ls {
    /// Lists only keys that match, without the prefix: `*` is any text, as in 'order:*'.
    pub(crate) pattern: Option<String>,
    /// Lists only locks of these kinds, separated by commas [default: all but done].
    #[arg(long = "kind", value_name = "KINDS", value_delimiter = ',', value_parser = KINDS)]
    pub(crate) kinds: Vec<String>,
    /// Scans without pauses, for a server with spare capacity.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Lists again and again, with a pause of this length, and marks what is different; Ctrl-C ends it.
    #[arg(long, value_name = "PAUSE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1s", conflicts_with = "fast")]
    pub(crate) watch: Option<Span>,
}

/// Shows who holds a lock, since when, how much of its lease is left, and who waits for it.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_SHOW), after_help = guide(WORDS, "incident/"))]
pub(crate) struct Show {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
    /// Shows it again and again, with a pause of this length, and marks what is different; Ctrl-C ends it.
    #[arg(long, value_name = "PAUSE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1s")]
    pub(crate) watch: Option<Span>,
}

/// Asks the holder of a lock to stop: its body ends, then the lock passes to the next waiter.
///
/// The lock is held until the body has ended, so no two holders are at work. Only --force takes the lock away, from
/// the hold that --id names. Several locks are released by a pattern, or by a file that `ls --json` wrote: without --yes
/// they are only listed.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_RELEASE), after_help = guide("", "incident/"))]
pub(crate) struct Release {
    /// The lock's key, without the prefix; or a pattern for several, such as 'order:*'.
    #[arg(required_unless_present = "ids", conflicts_with = "ids")]
    pub(crate) key: Option<String>,
    /// Takes KEY for a lock's key also where it could be a pattern.
    #[arg(long, conflicts_with = "ids")]
    pub(crate) exact: bool,
    /// Releases the holds in a file that `lockable ls --json` wrote; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    pub(crate) ids: Option<PathBuf>,
    /// Sends the requests for several locks, which are only listed without it.
    #[arg(long)]
    pub(crate) yes: bool,
    /// The reason, in one line, which the holder logs.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// How long to wait until the holder has stopped.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) grace: Span,
    /// Ends only this hold, by its id as `show` prints it.
    #[arg(long, value_parser = id)]
    pub(crate) id: Option<HolderId>,
    /// Takes the lock away, with two holders at work until the old one notices.
    #[arg(long)]
    pub(crate) force: bool,
    /// With --force, leaves the lock paused for so long, so that the old holder can notice before the next one begins.
    #[arg(long, value_name = "TIME", requires = "force")]
    pub(crate) delay: Option<Span>,
}

/// Waits until the present hold of a lock has ended, or with --free until no one has it and no one waits.
///
/// It only looks, and never waits in the lock's queue: it delays no one, and the lock may be taken again when it
/// returns.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_WAIT), after_help = guide("", "shell_script/"))]
pub(crate) struct Await {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
    /// How long to wait at most; then the exit code is 75.
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) limit: Option<Span>,
    /// Waits until no one has the lock and no one waits for it, also where `once` or `min_hold` keeps it.
    #[arg(long)]
    pub(crate) free: bool,
}

fn id(text: &str) -> Result<HolderId, &'static str> {
    text.parse().map_err(|_| "an id is 8 hexadecimal digits, as `lockable show` prints it")
}

/// As JSON has them, and a word for all of them.
pub(crate) const KINDS: [&str; 8] =
    ["all", "exclusive", "kept-by-min-hold", "done", "ticket", "paused", "foreign", "no-lock"];

const OF_LS: [&str; 2] =
    ["lockable ls 'order:*' --watch", "lockable ls --json | jq -r 'select(.waiting > 0) | .name'"];

const OF_SHOW: [&str; 2] =
    ["lockable show order:7 --watch", "lockable show order:7 --json | jq .remaining_ms"];

const OF_RELEASE: [&str; 2] = [
    "lockable release 'order:*' --reason 'stuck since noon' --yes",
    "lockable release order:7 --id 3fa91c02 --force",
];

const OF_WAIT: [&str; 2] =
    ["lockable wait nightly --for 30m && ./deploy", "lockable wait migration --free"];

const WORDS: &str = "\
Columns:
  HOLDER   the request id of the holder; - if it has none
  PROCESS  service@host:pid. `not connected`: it has ended, cannot reach the server, or its
           user may not name connections. `unknown`: the server shows none to this user
  HELD     since the lock was requested; <5.0s: the call waited, and the hold is shorter
  LEFT     until the lock ends, unless it is renewed; `no end`: another program wrote it
  WAITING  processes in the queue that listen, each with one or more calls
  LISTENS  whether the process would receive the lock's grant
  kind     only if it is no lock that a call of this library holds. kept-by-min-hold: its
           holder is done; done: a run that `once` does not repeat; ticket: on its way to
           another process; paused: an operator keeps it taken; foreign: of another library;
           no-lock: other data under the key

Marks of --watch: + new, ~ another holder, ^ renewed: more is left than before, - gone,
? its server did not reply. The bar is LEFT as a part of the most that this watch has seen
of the hold. With --json each change is a line, with the field `change`.";
