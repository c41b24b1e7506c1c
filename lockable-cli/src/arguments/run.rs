//! The arguments of `lockable run`.

use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::Span;
use super::help::{examples, guide};

/// Runs a command under a lock, and ends the command before the lock ends.
///
/// The lock is renewed while the command runs. It is released when no process that the command started is
/// alive: processes that the command leaves behind are ended first.
#[derive(Args, Debug)]
#[command(next_help_heading = "The lock and the command")]
#[command(before_help = examples(EXAMPLES), after_help = guide(ENVIRONMENT, "shell_script/"))]
pub(crate) struct Run {
    /// The lock's key, without the prefix; with several, the command runs under all of them.
    #[arg(long = "key", value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    /// The number of commands that run at a time, on all machines; with `all:N`, waits until all of them are out.
    #[arg(long, value_name = "N", conflicts_with_all = ["once", "fair"])]
    pub(crate) permits: Option<Permits>,
    /// Waits for a busy lock, without a limit or at most this long.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "")]
    pub(crate) wait: Option<Wait>,
    /// The lease: how long at most the lock stays taken if this machine dies.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) expire: Span,
    /// Passes the lock to another process after this holder, if one waits.
    #[arg(long, requires = "wait")]
    pub(crate) fair: bool,
    /// Ends the command after this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) max_hold: Option<Span>,
    /// Keeps the lock taken for at least this time, for machines whose clocks differ; at most --expire.
    #[arg(long, value_name = "TIME")]
    pub(crate) min_hold: Option<Span>,
    /// Runs the command once: after exit status 0 no other such call of this key runs for so long, counted from its
    /// start, and ends with 0 at once.
    #[arg(long, value_name = "TIME", conflicts_with = "min_hold")]
    pub(crate) once: Option<Span>,
    /// From SIGTERM to SIGKILL, at most a third of --expire [default: a third of --expire, at most 5s].
    #[arg(long, value_name = "TIME")]
    pub(crate) kill_after: Option<Span>,
    /// The exit code for a busy lock, such as 0 in a crontab.
    #[arg(long, value_name = "CODE", default_value_t = crate::failure::code::BUSY)]
    pub(crate) busy_code: u8,
    /// The request id, which `ls` and `show` print as the holder [default: LOCKABLE_REQUEST_ID, else the command and
    /// its process].
    #[arg(long, value_name = "TEXT")]
    pub(crate) request_id: Option<String>,
    /// Keeps the command in the terminal's foreground, so that it can read from it.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Run {
    /// The keys as messages name them.
    pub(crate) fn name(&self) -> String {
        self.keys.join(", ")
    }

    /// How long before the end of its lease a command is asked to end.
    pub(crate) fn kill_after(&self) -> Duration {
        let usual = MOST_PATIENCE.min(self.expire.0 / 3);
        self.kill_after.map_or(usual, |patience| patience.0)
    }

    /// Every duration, with its option.
    pub(super) fn spans(&self) -> Vec<(&'static str, Option<Span>)> {
        let wait = match self.wait {
            Some(Wait::AtMost(limit)) => Some(limit),
            Some(Wait::Forever) | None => None,
        };
        vec![
            ("--wait", wait),
            ("--expire", Some(self.expire)),
            ("--max-hold", self.max_hold),
            ("--min-hold", self.min_hold),
            ("--once", self.once),
            ("--kill-after", self.kill_after),
        ]
    }
}

/// How long a busy lock is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Forever,
    AtMost(Span),
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(Self::Forever) } else { text.parse().map(Self::AtMost) }
    }
}

/// How many commands run at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permits {
    /// This number, of which the command is one.
    OneOf(u32),
    /// This number, all of which the command has: it runs alone.
    All(u32),
}

impl FromStr for Permits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, is_all) = match text.strip_prefix("all:") {
            Some(number) => (number, true),
            None => (text, false),
        };
        match number.parse() {
            Ok(count @ 1..=64) => Ok(if is_all { Self::All(count) } else { Self::OneOf(count) }),
            _ => Err("write a number from 1 to 64, or `all:` and one".to_owned()),
        }
    }
}

const EXAMPLES: [&str; 2] = [
    "lockable run --key nightly --busy-code 0 -- /usr/local/bin/report --all",
    "lockable run --key deploy --wait 5m --max-hold 30m -- ./deploy.sh",
];

const ENVIRONMENT: &str = "\
The command's environment:
  LOCKABLE_KEY            the lock's key, as --key names it; each on a line of its own
  LOCKABLE_FENCING_TOKEN  grows with every holder; the protected resource rejects smaller ones; a line for each key
  LOCKABLE_REQUEST_ID     the request id, which `ls` and `show` print as the holder";

const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// The process between `lockable run` and the command.
#[derive(Args, Debug)]
pub(crate) struct Watcher {
    /// When the lease ends, in nanoseconds since boot.
    #[arg(long)]
    pub(crate) deadline: u64,
    /// From SIGTERM to SIGKILL, in milliseconds.
    #[arg(long)]
    pub(crate) kill_after: u64,
    /// The process group for the command; one of its own where there is none.
    #[arg(long)]
    pub(crate) group: Option<i32>,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

/// The process that becomes the command.
#[derive(Args, Debug)]
pub(crate) struct Command {
    /// The watcher.
    #[arg(long)]
    pub(crate) parent: i32,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

impl Command {
    pub(crate) const NAME: &str = "__command";
}

/// The process that ends as a command did.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct End {
    #[arg(long)]
    pub(crate) signal: i32,
}

impl End {
    pub(crate) const NAME: &str = "__end";
}

impl Watcher {
    pub(crate) const NAME: &str = "__watcher";
}
