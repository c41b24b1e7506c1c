//! What can be written on the command line.
#![allow(clippy::doc_markdown, reason = "these comments are the texts of `--help`")]

mod check;
mod connection;
mod help;
mod key;
mod operator;
mod pause;
mod run;
mod span;
mod texts;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

pub(crate) use self::check::Check;
pub(crate) use self::connection::Connection;
pub(crate) use self::key::Key;
#[cfg(test)]
pub(crate) use self::operator::KINDS;
pub(crate) use self::operator::{Await, Ls, Release, Show};
pub(crate) use self::pause::{Pause, Resume};
pub(crate) use self::run::{Command, End, Run, Watcher};
#[cfg(unix)]
pub(crate) use self::run::{Permits, Wait};
pub(crate) use self::span::Span;
pub(crate) use self::texts::{Completions, Man};

use self::help::{examples, guide};

use crate::environment::variable;
use crate::failure::Failure;

/// What was typed.
///
/// # Errors
/// With the exit code 2, and for a question, such as --help, with its answer and 0.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, Answer> {
    let words: Vec<_> = words.into_iter().collect();
    let has_dashes = words.iter().any(|word| word == "--");
    let is = |name: &str| words.iter().take_while(|word| *word != "--").any(|word| word == name);
    let (runs, json) = (is("run") && !has_dashes, is("--json"));
    let parsed = Arguments::try_parse_from(&words);
    let parsed = parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => Answer::Help(error),
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument if runs => {
            Answer::Mistake(Failure::usage(format!("{}; {DASHES}", in_one_line(&error))))
        }
        _ if json => Answer::Mistake(Failure::usage(in_one_line(&error))),
        _ => Answer::Help(error),
    });
    parsed?.complete().map_err(Answer::Mistake)
}

/// What is said in place of what a command does.
pub(crate) enum Answer {
    /// As the parser says it, with its exit code.
    Help(clap::Error),
    Mistake(Failure),
}

/// What the parser says without its tip and the usage, which are behind an empty line.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

impl Arguments {
    fn complete(mut self) -> Result<Self, Failure> {
        if let Verb::Run(Run { request_id: request_id @ None, .. }) = &mut self.verb {
            *request_id = variable("LOCKABLE_REQUEST_ID")?;
        }
        Ok(self)
    }

    /// What is read as it is written, and hardly means what was wanted.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = String> {
        let timeout = ("--timeout", Some(self.connection.timeout));
        let others = match &self.verb {
            Verb::Run(run) => run.spans(),
            Verb::Release(release) => {
                vec![("--grace", Some(release.grace)), ("--delay", release.delay)]
            }
            Verb::Pause(pause) => vec![
                ("--for", Some(pause.length)),
                ("--grace", Some(pause.grace)),
                ("--wait", pause.wait),
            ],
            Verb::Wait(wait) => vec![("--for", wait.limit)],
            Verb::Ls(ls) => vec![("--watch", ls.watch)],
            Verb::Show(show) => vec![("--watch", show.watch)],
            Verb::Check(_)
            | Verb::Resume(_)
            | Verb::Key(_)
            | Verb::Completions(_)
            | Verb::Man(_)
            | Verb::Watcher(_)
            | Verb::Command(_)
            | Verb::End(_) => Vec::new(),
        };
        let spans = others.into_iter().chain([timeout]);
        spans.filter_map(|(name, span)| span?.doubt(name))
    }
}

const DASHES: &str = "write `--` before the command: lockable run --key KEY -- COMMAND";

/// Lists distributed locks in Redis, asks their holders to stop, and runs commands under a lock.
#[derive(Debug, Parser)]
#[command(name = "lockable", version, max_term_width = 100)]
#[command(before_help = examples(EXAMPLES), after_help = guide(EXIT_CODES, ""))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints JSON: one object a line, and errors as objects on standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Prints on standard error what is sent to which server.
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Ls(Ls),
    Show(Show),
    Release(Release),
    Wait(Await),
    Pause(Pause),
    Resume(Resume),
    Check(Check),
    Run(Run),
    Key(Key),
    Completions(Completions),
    Man(Man),
    #[command(name = Watcher::NAME, hide = true)]
    Watcher(Watcher),
    #[command(name = Command::NAME, hide = true)]
    Command(Command),
    #[command(name = End::NAME, hide = true)]
    End(End),
}

/// The command line without the commands that `lockable` is for itself.
pub(crate) fn visible() -> clap::Command {
    let whole = Arguments::command();
    let visible = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let visible: Vec<_> = visible.collect();
    let command = clap::Command::new("lockable").version(env!("CARGO_PKG_VERSION"));
    let command = command.about(whole.get_about().cloned().unwrap_or_default());
    let command = command.before_help(examples(EXAMPLES)).after_help(guide(EXIT_CODES, ""));
    command.args(whole.get_arguments().cloned()).subcommands(visible)
}

const EXAMPLES: [&str; 2] =
    ["lockable ls 'order:*'", "lockable run --key nightly -- /usr/local/bin/report"];

const EXIT_CODES: &str = "\
Exit codes:
    0      done; `run`: the command's own code, or 128 and the number of the signal that ended it
    1      `check`: the report has an error; with --strict, an error or a warning
    2      the arguments are invalid, the key holds other data than a lock, or --yes is missing
    3      `show`, `release`, `resume`: the lock is free; `resume`: it is not paused
    4      `release`, `pause`: a holder was not asked or did not stop, and still has the lock
   69      Redis does not reply, or refuses the request
   75      `run`: another holder has the lock; `wait`, `pause`: it is still held, or paused already
  124      `run`: the lock was lost or revoked, or --max-hold was over, and the command was ended;
           `run`, `pause`: an operator stopped a call that waits
  125      lockable itself failed
  126/127  `run`: the command cannot be run, or was not found";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn mistake(line: &str) -> String {
        let parsed = parse(line.split(' ').map(OsString::from));
        let Err(Answer::Mistake(failure)) = parsed else { return String::new() };
        failure.line(false)
    }

    #[test]
    fn a_command_without_dashes_is_answered_by_how_to_write_it() {
        assert!(mistake("lockable run --key job true").contains("-- COMMAND"));
        assert!(mistake("lockable run --key job").contains("-- COMMAND"));
        assert_eq!(mistake("lockable run --key job --nonsense -- true"), "");
        let missing = "lockable: the following required arguments were not provided: <KEY>";
        assert_eq!(mistake("lockable show --json"), missing);
    }

    #[test]
    fn a_wait_takes_its_limit_in_both_forms() {
        let wait = |line: &str| match parse(line.split(' ').map(OsString::from)).map(|it| it.verb) {
            Ok(Verb::Run(run)) => run.wait,
            _ => None,
        };
        let second = Some(Wait::AtMost(Span(std::time::Duration::from_secs(1), None)));
        assert_eq!(wait("lockable run --key job --wait 1s -- true"), second);
        assert_eq!(wait("lockable run --key job --wait=1s -- true"), second);
        assert_eq!(wait("lockable run --key job --wait -- true"), Some(Wait::Forever));
        assert_eq!(wait("lockable run --wait --key job -- true"), Some(Wait::Forever));
    }

    #[test]
    fn a_command_has_a_third_of_its_lease_to_end_and_five_seconds_at_most() {
        let after = |line: &str| match parse(line.split(' ').map(OsString::from)).map(|it| it.verb)
        {
            Ok(Verb::Run(run)) => Some(run.kill_after().as_secs()),
            _ => None,
        };
        assert_eq!(after("lockable run --key k --expire 1h -- true"), Some(5));
        assert_eq!(after("lockable run --key k --expire 6s -- true"), Some(2));
    }

    #[test]
    fn each_time_that_looks_like_milliseconds_is_doubted() {
        for line in [
            "ls --watch=60000",
            "show k --watch=60000",
            "release k --grace 60000",
            "release k --force --delay 60000",
            "wait k --for 60000",
            "pause k --for 60000",
            "pause k --for 1h --now --grace 60000",
            "pause k --for 1h --wait 60000",
            "resume k --timeout 60000",
            "run --key k --wait 60000 -- true",
            "run --key k --expire 60000 -- true",
            "run --key k --max-hold 60000 -- true",
            "run --key k --min-hold 60000 -- true",
            "run --key k --once 60000 -- true",
            "run --key k --kill-after 60000 -- true",
        ] {
            let words = format!("lockable {line}");
            let Ok(arguments) = parse(words.split(' ').map(OsString::from)) else {
                panic!("{line}")
            };
            assert_eq!(arguments.doubts().count(), 1, "{line}");
        }
    }

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}
