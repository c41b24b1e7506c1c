//! The runs of all cases.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use lockable_benches::{Observer, Server, Team, number_of_cores};
use tempfile::TempDir;

use crate::case::{self, Case};
use crate::contender::Contender;
use crate::figures::{Figures, Totals};
use crate::tools;

/// What a pair takes, by the name of the case.
pub(crate) type Pairs = BTreeMap<String, Figures>;

/// Some cases at a time. A contender whose program cannot be built is left out.
pub(crate) fn all(contenders: &[Contender]) -> Result<Pairs, String> {
    let is_there = |contender: &&Contender| {
        let note = |why| eprintln!("note: {} is left out: {why}", contender.name());
        contender.program().map_err(note).is_ok()
    };
    let there: Vec<_> = contenders.iter().filter(is_there).collect();
    let cases = Mutex::new(case::all().filter(|case| there.contains(&&case.contender)));
    let next = || cases.lock().expect("no panic").next();
    let work = || std::iter::from_fn(next).map(figures).collect::<Result<Vec<_>, _>>();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..number_of_cores()).map(|_| scope.spawn(work)).collect();
        let parts = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    })
}

fn figures(case: Case) -> Result<(String, Figures), String> {
    let totals = |pairs| totals(&case, pairs).map_err(|why| format!("{case}: {why}"));
    Ok((case.to_string(), Figures::between(&totals(SHORT)?, &totals(LONG)?, LONG - SHORT)))
}

/// One run counts instructions, of client and server; another one everything else, at a server
/// that answers as fast as it can.
fn totals(case: &Case, pairs: usize) -> Result<Totals, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let file = |name: &str| folder.path().join(name);
    let [server, client, calls] = ["server", "client", "calls"].map(file);
    let under_callgrind = tools::callgrind(&server);
    let words: Vec<&str> = under_callgrind.iter().map(String::as_str).collect();
    run(case, pairs, Server::start_under(&words, QUIET), tools::callgrind(&client))?;
    let totals = run(case, pairs, Server::start(), tools::strace(&calls))?;
    Ok(Totals {
        client: instructions(&client)?,
        server: instructions(&server)?,
        calls: tools::calls(&read(&calls)?),
        ..totals
    })
}

/// From the start of a client to the end of both.
fn run(case: &Case, pairs: usize, server: Server, tool: Vec<String>) -> Result<Totals, String> {
    let words = [tool, case.contender.program()?, vec![server.url()]].concat();
    let mut observer = Observer::new(&server.url());
    let before = observer.look();
    let mut team = Team::start(1, || command(&words))?;
    let worker = &mut team.first(1)[0];
    worker.say(&case.order(pairs))?;
    worker.answer_within(LIMIT)?;
    let after = observer.look();
    team.end()?;
    // Its log is complete then.
    drop(server);
    let (commands, bytes) = (after.all_calls_since(&before), after.bytes_since(&before));
    Ok(Totals { commands, bytes, ..Totals::default() })
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn instructions(log: &Path) -> Result<u64, String> {
    let log = read(log)?;
    tools::instructions(&log).ok_or(log)
}

fn read(log: &Path) -> Result<String, String> {
    fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))
}

/// Of one run, which takes seconds where nothing else runs.
const LIMIT: Duration = Duration::from_secs(600);

/// Housekeeping goes by time, so it would count for more on a busy machine.
const QUIET: &[&str] = &["--hz", "1", "--dynamic-hz", "no"];

/// Pairs of a run.
const SHORT: usize = 640;
const LONG: usize = 2_560;
