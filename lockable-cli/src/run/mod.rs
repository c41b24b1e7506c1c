//! `lockable run`: a command that runs only while a lock is held.

mod alarm;
mod channel;
mod command;
mod ending;
mod family;
mod held;
mod imitation;
mod orders;
mod signals;
mod stdin;
mod supervision;
mod watched;
mod watcher;

use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, RequestId, shutdown};

pub(crate) use self::command::become_command;
pub(crate) use self::imitation::{end, leave};
pub(crate) use self::signals::{asked_to_end, hear_children};
pub(crate) use self::watcher::watch;

use self::held::Held;
use self::signals::Signals;
use self::supervision::{Outcome, Stop, Supervision, deadline};
use self::watched::Watched;
use crate::arguments::{Connection, Permits, Run};
use crate::connect;
use crate::exit::Exit;
use crate::failure::{Failure, code};
use crate::output::note;
use crate::output::times::short;

/// Acquires the lock, runs the command, and ends as that did.
pub(crate) async fn run(
    connection: &Connection,
    arguments: Run,
    json: bool,
) -> Result<Exit, Failure> {
    // One alone: a password may come from a pipe, which is empty when it is read for another.
    let locker = connect::locker(connection)?;
    let prefix = locker.admin().prefix().to_owned();
    check(&arguments, &prefix)?;
    let mut signals = Signals::listen().map_err(|error| failed("no signals", &error))?;
    let id = request_id(&arguments);
    let outcome = tokio::select! {
        outcome = id.scope(Held::acquire(&locker, &arguments)) => outcome,
        number = ending(&mut signals) => return Ok(give_up(number).await),
    };
    let guard = match outcome {
        Ok(guard) => guard,
        // Nothing is written where that is as good as success: the lines of a crontab are mailed.
        Err(error) if error.is_busy() && arguments.busy_code == 0 => return Ok(Exit::Code(0)),
        // A run that still counts when it should not is seen by its time alone.
        Err(error) if error.is_done() => {
            note(json, &format!("{error}; the command was not run"));
            return Ok(Exit::Code(0));
        }
        Err(error) if error.is_busy() => {
            let key = error.key().and_then(|key| key.strip_prefix(&*prefix));
            let key = key.or(arguments.keys.first().map(String::as_str));
            return Err(busy(connection, &arguments, key.unwrap_or_default(), &error));
        }
        Err(error) => {
            let_go().await;
            return Err(error.into());
        }
    };
    // A panic would drop it, and with it release the lock, while the command runs.
    let guard = ManuallyDrop::new(guard);
    let (outcome, watched) = under_lock(&guard, &arguments, &id, &mut signals, json).await;
    release(ManuallyDrop::into_inner(guard), &outcome, &arguments, json).await;
    if let Some(watched) = watched {
        watched.reap().await;
    }
    exit(outcome?, &arguments.name(), json)
}

fn check(arguments: &Run, prefix: &str) -> Result<(), Failure> {
    let has_prefix = |key: &&String| !prefix.is_empty() && key.starts_with(prefix);
    if let Some(whole) = arguments.keys.iter().find(has_prefix) {
        let key = whole.replacen(prefix, "", 1);
        let why = format!("--key takes the key without its prefix: `{key}` for `{whole}`");
        let other = "if it begins so itself, write --prefix '' and the whole key";
        return Err(Failure::usage(format!("{why}; {other}")));
    }
    let takes_one =
        [("--once", arguments.once.is_some()), ("--permits", arguments.permits.is_some())];
    let option = takes_one.into_iter().find(|(_, is_given)| *is_given && arguments.keys.len() > 1);
    if let Some((option, _)) = option {
        return Err(Failure::usage(format!("{option} is for one --key")));
    }
    if arguments.once.is_some_and(|period| period.0 < SHORTEST_PERIOD) {
        return Err(Failure::usage("--once must be at least 10ms"));
    }
    if arguments.expire.0 < SHORTEST {
        return Err(Failure::usage("--expire must be at least 1s for a program"));
    }
    if arguments.min_hold.is_some_and(|least| least.0 > arguments.expire.0) {
        return Err(Failure::usage("--min-hold is at most --expire"));
    }
    // A healthy lease is renewed, and the command learns of it, before two thirds of it are left.
    if arguments.kill_after() > arguments.expire.0 / 3 {
        return Err(Failure::usage("--kill-after must be at most a third of --expire"));
    }
    Ok(())
}

/// Who holds the lock, as others see it.
fn request_id(arguments: &Run) -> RequestId {
    let program = arguments.command.first().map(Path::new).and_then(Path::file_name);
    let program = program.unwrap_or_default().to_string_lossy();
    let usual = || format!("{program}:{}", process::id());
    RequestId::new(arguments.request_id.clone().unwrap_or_else(usual))
}

/// A lock, or the key that permits have in front of their numbers.
fn busy(connection: &Connection, arguments: &Run, key: &str, error: &LockError) -> Failure {
    let see = match arguments.permits {
        None => connect::command(connection, "show", &[key]),
        Some(_) => connect::command(connection, "ls", &[&format!("{key}#*")]),
    };
    let (text, name) = (error.to_string(), error.key().unwrap_or_default().escape_debug());
    // The failure names the key itself.
    let words = text.strip_prefix(&format!("lock `{name}`: ")).unwrap_or(&text);
    let what = match (arguments.permits, arguments.wait) {
        (None, _) => words,
        (Some(_), _) if words.contains("the lock is paused") => words,
        (Some(Permits::OneOf(_)), None) => "all permits are taken, or others wait for them",
        (Some(Permits::OneOf(_)), Some(_)) => "all permits are still taken",
        (Some(Permits::All(_)), None) => "a permit is taken, or others wait for them",
        (Some(Permits::All(_)), Some(_)) => "a permit is still taken",
    };
    // A run that is done keeps the lock for longer than anyone waits.
    let may_wait = arguments.wait.is_none() && !words.starts_with("a call with `once`");
    let advice = if may_wait { "wait with --wait, or see" } else { "see" };
    let message = format!("{what}; {advice} who holds it: {see}");
    Failure::new("busy", arguments.busy_code, message).of_lock(key)
}

/// A signal that ends a call which still waits.
async fn ending(signals: &mut Signals) -> i32 {
    loop {
        let number = signals.next().await;
        if signals::ends(number) {
            return number;
        }
    }
}

async fn give_up(number: i32) -> Exit {
    let_go().await;
    Exit::Signal(number)
}

/// What a call was granted that is given up is released in the background; otherwise it ends with its lease.
async fn let_go() {
    // What is left then ends by itself too.
    shutdown(PATIENCE).await.ok();
}

async fn under_lock(
    guard: &Held,
    arguments: &Run,
    id: &RequestId,
    signals: &mut Signals,
    json: bool,
) -> (Result<Outcome, Failure>, Option<Watched>) {
    let deadline = deadline(guard, arguments.expire.0);
    let tokens = guard.tokens().into_iter().map(|token| token.to_string());
    let variables = [
        ("LOCKABLE_KEY", arguments.keys.join("\n")),
        ("LOCKABLE_FENCING_TOKEN", tokens.collect::<Vec<_>>().join("\n")),
        ("LOCKABLE_REQUEST_ID", id.as_str().to_owned()),
    ];
    let watched = match Watched::start(arguments, deadline, variables, json) {
        Ok(watched) => watched,
        Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
            let why = "the command with its arguments is too long to be started";
            return (Err(Failure::new("cannot-run", code::CANNOT_RUN, why)), None);
        }
        Err(error) => return (Err(failed("cannot start the watcher", &error)), None),
    };
    let supervision = Supervision::new(guard, arguments, json, watched, deadline);
    let (outcome, watched) = supervision.stay(signals).await;
    (outcome.map_err(|error| failed("cannot watch the command", &error)), Some(watched))
}

/// The lock is released behind the last process. What comes of it changes nothing for the command.
async fn release(guard: Held, outcome: &Result<Outcome, Failure>, arguments: &Run, json: bool) {
    // A lock that is lost needs none, and its server may be the reason.
    if guard.leases().iter().all(Lease::is_lost) {
        return;
    }
    let is_partly_lost = guard.leases().iter().any(Lease::is_lost);
    let stop = outcome.as_ref().ok().and_then(|outcome| outcome.stop.as_ref());
    if is_partly_lost || matches!(stop, Some(Stop::RunsOut)) {
        // A server that did not renew is not waited for as long as another.
        drop(guard);
        return let_go().await;
    }
    let left = guard.remaining();
    let period = arguments.once.filter(|_| outcome.as_ref().is_ok_and(has_succeeded));
    if let Err(error) = guard.release(period.map(|period| period.0)).await
        && outcome.as_ref().is_ok_and(|outcome| outcome.stop.is_none())
    {
        let (is_lost, left, key) = (error.is_lost(), short(left), arguments.name());
        let why = Failure::from(error).line(false).replacen("lockable: ", "", 1);
        let what = if is_lost {
            "was lost before its release, so it may not have run alone".to_owned()
        } else {
            format!("was not released and ends in {left} at most")
        };
        note(json, &format!("lock `{key}`: the command has run, but the lock {what}: {why}"));
    }
}

/// Whether the command ended by itself, with 0.
fn has_succeeded(outcome: &Outcome) -> bool {
    let is_whole = outcome.stop.is_none() && !outcome.unwatched;
    is_whole && matches!(outcome.exit, Some(Exit::Code(0)))
}

fn exit(outcome: Outcome, key: &str, json: bool) -> Result<Exit, Failure> {
    if let Some(stop) = outcome.stop {
        return Err(stopped(stop, key));
    }
    if outcome.unwatched {
        let why =
            "the watcher process has ended or was stopped, and the command was killed with it";
        return Err(Failure::internal(why).of_lock(key));
    }
    if outcome.left_behind {
        let what = "the command left processes behind, which were ended before the release";
        note(json, &format!("lock `{key}`: {what}"));
    }
    outcome.exit.ok_or_else(|| stopped(Stop::RunsOut, key))
}

fn stopped(stop: Stop, key: &str) -> Failure {
    match stop {
        Stop::Lock(error) if error.is_lost() => {
            Failure::new("lost", code::LOST, format!("{error}; the command was killed"))
        }
        Stop::Lock(error) => {
            Failure::new("revoked", code::LOST, format!("{error}; the command was ended"))
        }
        Stop::MaxHold => {
            let why = "--max-hold is over; the command was ended";
            Failure::new("max-hold", code::LOST, why).of_lock(key)
        }
        Stop::RunsOut => Failure::new("lost", code::LOST, RUNS_OUT).of_lock(key),
    }
}

fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::internal(format!("{what}: {error}"))
}

const RUNS_OUT: &str = "the lease was not renewed in time, because Redis did not reply or this process was stopped; the \
                        command was ended";

/// A process needs time to start, and to be ended.
const SHORTEST: Duration = Duration::from_secs(1);

/// As the library has it, which checks it at the end of the run.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// For the release of what was granted to a call that is not wanted any more.
const PATIENCE: Duration = Duration::from_secs(1);
