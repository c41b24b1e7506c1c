//! The arguments of the commands that look at locks and release them.

use clap::Args;
use lockable_runtime::admin::HolderId;

use super::Span;
use super::help::{examples, guide};

/// Lists the locks that are held, with their holders and how many processes wait.
///
/// It scans all keys of the server at a throttled rate, and never with KEYS. Locks are printed in groups as they are
/// found; in each group the locks with the most waiters come first.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_LS), after_help = guide(WORDS, "incident/"))]
pub(crate) struct Ls {
    /// Lists only keys that match, without the prefix: `*` is any text, as in 'order:*'.
    pub(crate) pattern: Option<String>,
    /// Scans without pauses, for a server with spare capacity.
    #[arg(long)]
    pub(crate) fast: bool,
}

/// Shows who holds a lock, since when, how much of its lease is left, and who waits for it.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_SHOW), after_help = guide(WORDS, "incident/"))]
pub(crate) struct Show {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
}

/// Asks the holder of a lock to stop: its body ends, then the lock passes to the next waiter.
///
/// The lock is held until the body has ended, so no two holders are at work. Only --force takes the lock away, from
/// the hold that --id names.
#[derive(Args, Debug)]
#[command(before_help = examples(OF_RELEASE), after_help = guide("", "incident/"))]
pub(crate) struct Release {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
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
}

fn id(text: &str) -> Result<HolderId, &'static str> {
    text.parse().map_err(|_| "an id is 8 hexadecimal digits, as `lockable show` prints it")
}

const OF_LS: [&str; 2] =
    ["lockable ls 'order:*'", "lockable ls --json | jq -r 'select(.waiting > 0) | .name'"];

const OF_SHOW: [&str; 2] =
    ["lockable show order:7", "lockable show order:7 --json | jq .remaining_ms"];

const OF_RELEASE: [&str; 2] = [
    "lockable release order:7 --reason 'stuck since noon'",
    "lockable release order:7 --id 3fa91c02 --force",
];

const WORDS: &str = "\
Columns:
  HOLDER   the request id of the holder; - if it has none
  PROCESS  service@host:pid. `not connected`: it has ended, cannot reach the server, or its
           user may not name connections. `unknown`: the server shows none to this user
  HELD     since the lock was requested; <5.0s: the call waited, and the hold is shorter
  LEFT     until the lock ends, unless it is renewed; `no end`: another program wrote it
  WAITING  processes in the queue, each with one or more calls
  LISTENS  whether the process would receive the lock's grant
  kind     only if it is no lock that a call of this library holds. kept-by-min-hold: its
           holder is done; foreign: of another library; no-lock: other data under the key";
