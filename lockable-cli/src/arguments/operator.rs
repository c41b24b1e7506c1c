//! The arguments of the commands that look at locks and release them.

use clap::Args;
use lockable_runtime::admin::HolderId;

use super::Span;

/// Lists the locks that are held, with their holders and how many processes wait.
///
/// It goes through all keys of the server, gently: with pauses, and never by KEYS. Locks are printed as they are found,
/// a group at a time; in each group those that most wait for come first.
#[derive(Args, Debug)]
#[command(after_help = WORDS)]
pub(crate) struct Ls {
    /// Only keys of this form, without the prefix: `*` is any text, as in 'order:*'.
    pub(crate) pattern: Option<String>,
    /// Without pauses, for a server that has time.
    #[arg(long)]
    pub(crate) fast: bool,
}

/// Shows who has a lock, since when, for how long, and who waits for it.
#[derive(Args, Debug)]
#[command(after_help = WORDS)]
pub(crate) struct Show {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
}

/// Asks the holder of a lock to stop: its body ends, then the lock passes to the next.
///
/// The lock is held until the body has ended, so no two are at work. It is taken away only with --force, from
/// the hold that --id names.
#[derive(Args, Debug)]
pub(crate) struct Release {
    /// The lock's key, without the prefix.
    pub(crate) key: String,
    /// Why, in one line: the holder logs it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// How long the answer of the holder is waited for.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) grace: Span,
    /// Only from this hold, as `show` names it.
    #[arg(long, value_parser = id)]
    pub(crate) id: Option<HolderId>,
    /// Takes the lock away, with two at work until the holder notices.
    #[arg(long)]
    pub(crate) force: bool,
}

fn id(text: &str) -> Result<HolderId, &'static str> {
    text.parse().map_err(|_| "an id is 8 hexadecimal digits, as `lockable show` prints it")
}

const WORDS: &str = "\
What the columns say:
  HOLDER   the request id of the holder; - if it has none
  PROCESS  service@host:pid. `not connected`: it has ended, cannot reach the server, or its
           user may not name connections. `unknown`: the server shows none to this user
  HELD     since the lock was asked for; <5.0s: it was waited for, and is held for less
  LEFT     until the lock ends, if it is not renewed; `no end`: another program wrote it
  WAITING  processes in the queue, each with one or more calls
  LISTENS  whether the process would hear that it has the lock
  kind     only where it is no lock that a call of this library holds. kept-by-min-hold: its
           holder is done; foreign: of another library; no-lock: other data under the key";
