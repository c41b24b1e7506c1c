//! `cargo xtask chaos`: real processes under locks, while servers, networks and processes fail.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{mutants, redis, shell, workspace};

pub(crate) const USAGE: &str =
    "chaos [--minutes N] [--seed SEED] [--only one|aof|sentinel|cluster] [--bug ID]";

const TEST: &str = "chaos_breaks_no_rule";

/// Runs each topology for this number of minutes; the last line sums up what they have shown.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let options = Options::parse(arguments).ok_or_else(|| format!("usage: cargo xtask {USAGE}"))?;
    redis::prepare()?;
    // One of the four processes is this program.
    let mut program = shell::cargo(&["build", "-p", "lockable-cli"]);
    let mut cargo = shell::cargo(&["test", "-p", "lockable-tests", "--test", "chaos"]);
    cargo.args(["--", "--exact", TEST, "--nocapture"]);
    cargo.env("LOCKABLE_CHAOS_MINUTES", options.minutes);
    cargo.env("LOCKABLE_CHAOS_SEED", options.seed);
    cargo.env("LOCKABLE_CHAOS_ONLY", options.only);
    cargo.env("LOCKABLE_CHAOS_COMMIT", said("git", &["rev-parse", "--short", "HEAD"]));
    cargo.env("LOCKABLE_CHAOS_DATE", said("date", &["+%F"]));
    let mut build = workspace::root().join(workspace::target());
    if let Some(id) = options.bug {
        mutants::with_bug(&id, &mut program)?;
        build = mutants::with_bug(&id, &mut cargo)?;
    }
    let summary = build.join("chaos").join("summary");
    // That of another run says nothing of this one.
    drop(fs::remove_file(&summary));
    let is_good = shell::show(&mut program) && shell::show(&mut cargo);
    let summary = fs::read_to_string(summary);
    print!("{}", summary.unwrap_or_else(|_| "chaos: the run did not come to its end\n".to_owned()));
    Ok(is_good)
}

struct Options {
    minutes: String,
    seed: String,
    only: String,
    bug: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let (minutes, only, bug) = ("10".to_owned(), String::new(), None);
        let mut options = Self { minutes, seed: new_seed(), only, bug };
        while let Some(name) = arguments.next() {
            let value = arguments.next()?;
            match name.as_str() {
                "--minutes" => {
                    value.parse::<f64>().ok().filter(|minutes| *minutes > 0.0)?;
                    options.minutes = value;
                }
                "--seed" => {
                    value.parse::<u64>().ok()?;
                    options.seed = value;
                }
                "--bug" => options.bug = Some(value),
                "--only" if TOPOLOGIES.contains(&value.as_str()) => options.only = value,
                _ => return None,
            }
        }
        Some(options)
    }
}

fn new_seed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs()).to_string()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = shell::output(command.args(arguments).current_dir(workspace::root()));
    output.map_or_else(|_| "-".to_owned(), |output| output.trim().to_owned())
}

const TOPOLOGIES: [&str; 4] = ["one", "aof", "sentinel", "cluster"];
