//! `lockable release`: asks the holder of a lock to stop, and takes the lock away only where that is ordered.

use std::env;
use std::time::Duration;

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Admin, Forced, HeldLock, HolderId, Revoked};
use serde::Serialize;

use crate::arguments::{Connection, Release};
use crate::commands::second_look::{self, FirstLook, SecondLook};
use crate::commands::silence::{self, Silence};
use crate::commands::{free, no_lock};
use crate::connect;
use crate::directory::{Directory, Known};
use crate::failure::{Failure, code};
use crate::output::escape::printable;
use crate::output::lock::{ProcessLine, place};
use crate::output::shell::quoted;
use crate::output::times::{milliseconds, short};
use crate::output::{json, write_line};

pub(crate) async fn release(
    connection: &Connection,
    arguments: Release,
    json: bool,
) -> Result<u8, Failure> {
    let admin = connect::locker(connection)?.admin();
    let held = admin.holder(&arguments.key).await?;
    let held = held.ok_or_else(|| free(connection, &arguments.key))?;
    if held.holder().kind() == HolderKind::NoLock {
        return Err(no_lock(&arguments.key));
    }
    check_id(&held, &arguments)?;
    let reason = arguments.reason.clone().unwrap_or_else(usual_reason);
    let first = FirstLook::at(held.clone());
    let outcome = if held.holder().kind() == HolderKind::Done {
        // No one is at work that could be asked.
        Outcome { what: "undone", ..force(&admin, &held, &reason).await? }
    } else if arguments.force {
        force(&admin, &held, &reason).await?
    } else {
        let asked = admin.revoke(&held, &reason).grace(arguments.grace.0).await?;
        answer(&admin, &first, connection, asked).await?
    };
    let (next, directory) = (next(&admin, &held).await, Directory::of(&admin).await);
    outcome.print(&held, next.as_ref().map(|next| Next::of(next, &directory)), json);
    Ok(0)
}

/// Who has the lock now, where that is known: it is no failure of the release that it is not.
async fn next(admin: &Admin, held: &HeldLock) -> Option<HeldLock> {
    let now = admin.holder(held.name()).await.ok().flatten()?;
    let is_next = now.holder().kind() == HolderKind::Exclusive;
    (is_next && now.holder().id() != held.holder().id()).then_some(now)
}

/// # Errors
/// When another hold is meant, or none is named where the lock is to be taken away.
fn check_id(held: &HeldLock, arguments: &Release) -> Result<(), Failure> {
    let now = held.holder().id();
    match arguments.id {
        None if arguments.force => {
            let message = "--force needs the --id of the hold, so that it never ends a later one";
            Err(Failure::usage(format!("{message}; it is now {now}: {}", forced(now))))
        }
        Some(id) if id != now => {
            Err(kept(format!("the lock has another holder now, with --id {now}")).about(held))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// When the holder has the lock still.
async fn answer(
    admin: &Admin,
    first: &FirstLook,
    connection: &Connection,
    asked: Revoked,
) -> Result<Outcome, Failure> {
    match asked {
        Revoked::Released { after } => return Ok(released(admin, &first.held, after).await),
        Revoked::Changed => return Ok(Outcome::new("changed", None)),
        _ => {}
    }
    let Some(second) = first.again(admin).await? else { return Ok(Outcome::new("changed", None)) };
    let directory = Directory::of(admin).await;
    let Advice { why, first, force } = Advice::of(asked, &second, connection, &directory);
    let (end, forced) = (second.end(), forced(second.held.holder().id()));
    let first = first.map_or_else(String::new, |first| format!("; {first}"));
    let message = format!("{why}; {end}{first}; {force}: {forced}");
    Err(kept(message).about(&second.held).renewed(second.was_renewed()))
}

/// What to do about a holder that has the lock still.
struct Advice {
    why: String,
    /// What comes before the lock is taken away, where anything is known.
    first: Option<String>,
    /// What it means to take the lock away.
    force: &'static str,
}

impl Advice {
    fn of(
        asked: Revoked,
        second: &SecondLook,
        connection: &Connection,
        directory: &Directory,
    ) -> Self {
        let holder = second.held.holder();
        let known = directory.find(holder.process());
        let silence = || Silence::of(holder, connection, directory);
        let end = match known {
            Known::Connected(process) => Some(second_look::end_of(process)),
            Known::NotConnected | Known::Unknown => None,
        };
        let Revoked::NotReleased { waited } = asked else {
            let Silence { why, force } = silence();
            return Self {
                why: format!("the holder cannot be asked to stop: {why}"),
                first: end,
                force,
            };
        };
        let why =
            format!("the holder was asked to stop, and still has the lock after {}", short(waited));
        // A node of a cluster does not know who listens.
        if let Known::NotConnected = known {
            let Silence { why: gone, force } = silence();
            return Self { why: format!("{why}; {gone}"), first: None, force };
        }
        let or = end.map_or_else(String::new, |end| format!(", or {end}"));
        let first = Some(format!("wait longer with --grace{or}"));
        Self { why, first, force: silence::AT_WORK }
    }
}

/// A lock with `min_hold` stays taken when its holder has stopped.
async fn released(admin: &Admin, held: &HeldLock, after: Duration) -> Outcome {
    // Without an answer it is released all the same.
    let now = admin.holder(held.name()).await.ok().flatten();
    let is_kept = |now: &HeldLock| {
        now.holder().kind() == HolderKind::KeptByMinHold
            && now.holder().process() == held.holder().process()
            && now.holder().held_since() == held.holder().held_since()
    };
    let kept = now.filter(is_kept).and_then(|now| now.holder().remaining());
    Outcome { kept_ms: kept.map(milliseconds), kept, ..Outcome::new("released", Some(after)) }
}

async fn force(admin: &Admin, held: &HeldLock, reason: &str) -> Result<Outcome, Failure> {
    if admin.force_release(held, reason).await? == Forced::Released {
        return Ok(Outcome::new("forced", None));
    }
    let message = "the lock has changed hands meanwhile, and was not taken";
    Err(kept(message.to_owned()).about(held))
}

fn kept(message: String) -> Failure {
    Failure::new("not-released", code::UNANSWERED, message)
}

/// What was typed, with what takes the lock away.
fn forced(id: HolderId) -> String {
    // A path may be no text; then it has to be typed again.
    let typed = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    forced_as_typed(&typed.collect::<Vec<_>>(), id)
}

/// Behind `--` there is the key alone.
fn forced_as_typed(typed: &[String], id: HolderId) -> String {
    let is_option = |word: &&String| *word != "--";
    let (options, key) = typed.split_at(typed.iter().take_while(is_option).count());
    let options = options.iter().filter(|word| *word != "--force");
    let mut words: Vec<_> = ["lockable".to_owned()].into_iter().chain(options.cloned()).collect();
    if !words.iter().any(|word| word == "--id" || word.starts_with("--id=")) {
        words.extend(["--id".to_owned(), id.to_string()]);
    }
    words.push("--force".to_owned());
    words.iter().chain(key).map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// What becomes of a holder whose lock was taken away.
fn hears(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Foreign => ", which is another library's and gets no message",
        HolderKind::KeptByMinHold | HolderKind::Done => ", which had released it",
        _ => ", which stops when it gets the message",
    }
}

fn usual_reason() -> String {
    let user = env::var("USER").unwrap_or_else(|_| "someone".to_owned());
    format!("{user}@{}, by `lockable release`", host())
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// What became of the lock.
#[derive(Serialize)]
struct Outcome {
    #[serde(rename = "outcome")]
    what: &'static str,
    after_ms: Option<u64>,
    #[serde(skip)]
    after: Option<Duration>,
    /// For how long the lock stays taken by its `min_hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_ms: Option<u64>,
    #[serde(skip)]
    kept: Option<Duration>,
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    name: &'a str,
    id: String,
    #[serde(flatten)]
    outcome: &'a Outcome,
    next: Option<Next<'a>>,
}

/// Who has the lock now.
#[derive(Serialize)]
struct Next<'a> {
    id: String,
    request_id: Option<&'a str>,
    process: Option<ProcessLine<'a>>,
    #[serde(skip)]
    words: String,
}

impl<'a> Next<'a> {
    fn of(now: &'a HeldLock, directory: &'a Directory) -> Self {
        let holder = now.holder();
        let (id, known) = (holder.id().to_string(), directory.find(holder.process()));
        let who = holder.request_id().map(|identity| format!("{identity}, ")).unwrap_or_default();
        let words = format!("; next: {who}{}, with the id {id}", place(known));
        let process = ProcessLine::of(holder.process(), directory);
        Self { id, request_id: holder.request_id(), process, words }
    }
}

impl Outcome {
    fn new(what: &'static str, after: Option<Duration>) -> Self {
        Self { what, after_ms: after.map(milliseconds), after, kept_ms: None, kept: None }
    }

    fn print(&self, held: &HeldLock, next: Option<Next<'_>>, json: bool) {
        let (name, id) = (held.name(), held.holder().id().to_string());
        if json {
            json::print(&Line { key: held.key().as_str(), name, id, outcome: self, next });
            return;
        }
        let name = printable(name);
        let next = next.map(|next| printable(&next.words)).unwrap_or_default();
        let done = match (self.what, self.after) {
            ("forced", _) => format!("{name}: taken away from {id}{}", hears(held.holder().kind())),
            ("undone", _) => format!("{name}: is not done any more; the next call runs"),
            ("changed", _) => format!("{name}: {id} no longer has it"),
            _ if held.holder().kind() == HolderKind::Ticket => {
                format!("{name}: the ticket {id} is released, and cannot be redeemed any more")
            }
            (_, after) => {
                let after = short(after.unwrap_or_default());
                let kept = self.kept.map(short).map_or_else(String::new, |kept| {
                    format!("; it stays taken for {kept}, because of its `min_hold`")
                });
                format!("{name}: released by {id} after {after}{kept}")
            }
        };
        write_line(&(done + &next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_offered_with_force() {
        let offered = |typed: &str| {
            let typed: Vec<_> = typed.split(' ').map(str::to_owned).collect();
            forced_as_typed(&typed, "3fa91c02".parse().unwrap())
        };
        let plain = "lockable release order:7 --id 3fa91c02 --force";
        assert_eq!(offered("release order:7"), plain);
        assert_eq!(offered("release order:7 --force --id 3fa91c02"), plain);
        assert_eq!(offered("release -- -k"), "lockable release --id 3fa91c02 --force -- -k");
    }
}
