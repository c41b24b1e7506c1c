//! What a holder has answered that was asked to stop, and what to do about one that has the lock still.

use std::time::Duration;

use lockable_runtime::admin::{Admin, Forced, HeldLock, Revoked};
use lockable_runtime::{HolderKind, LockError};

use super::outcome::{Outcome, released};
use crate::arguments::{Connection, Span};
use crate::commands::liveness::{self, Liveness, LivenessCheck};
use crate::commands::silence::{self, Silence};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::shell::quoted;
use crate::output::times::short;
use crate::process_index::{Known, ProcessIndex};

/// # Errors
/// When the holder has the lock still.
pub(super) async fn answer(
    admin: &Admin,
    first: &LivenessCheck,
    connection: &Connection,
    asked: Revoked,
    forced: impl FnOnce(&HeldLock) -> String,
) -> Result<Outcome, Failure> {
    match asked {
        Revoked::Released { after } => return Ok(released(admin, &first.held, after).await),
        Revoked::Changed => return Ok(Outcome::new("changed", None)),
        _ => {}
    }
    let Some(second) = first.again(admin).await? else { return Ok(Outcome::new("changed", None)) };
    let process_index = ProcessIndex::of(admin).await;
    let Advice { why, first, force } = Advice::of(asked, &second, connection, &process_index);
    let (end, forced) = (second.end(), forced(&second.held));
    let first = first.map_or_else(String::new, |first| format!("; {first}"));
    let message = format!("{why}; {end}{first}; {force}: {forced}");
    Err(kept(message).about(&second.held).renewed(second.was_renewed()))
}

/// As [`answer`], but for a pause that takes the place of the holder.
///
/// # Errors
/// When the holder has the lock still.
pub(in crate::commands) async fn stopped(
    admin: &Admin,
    first: &LivenessCheck,
    connection: &Connection,
    asked: Revoked,
    (length, reason): (Duration, &str),
) -> Result<(), Failure> {
    let forced = |held: &HeldLock| {
        let (id, delay, reason) = (held.holder().id(), length.as_secs().max(1), quoted(reason));
        let verb = format!("release --id {id} --force --delay {delay}s --reason {reason}");
        connect::command(connection, &verb, &[held.name()])
    };
    answer(admin, first, connection, asked, forced).await.map(drop)
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
        second: &Liveness,
        connection: &Connection,
        process_index: &ProcessIndex,
    ) -> Self {
        let holder = second.held.holder();
        let known = process_index.find(holder.process());
        let silence = || Silence::of(holder, connection, process_index);
        let end = match known {
            Known::Connected(process) => Some(liveness::end_of(process)),
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

pub(super) fn kept(message: String) -> Failure {
    Failure::new("not-released", code::UNANSWERED, message)
}

/// Takes the lock away, and leaves it paused for the delay.
///
/// # Errors
/// When another holder has it by now.
pub(super) async fn force(
    admin: &Admin,
    held: &HeldLock,
    reason: &str,
    delay: Option<Span>,
) -> Result<Outcome, Failure> {
    let outcome = taken(held, forced(admin, held, reason, delay).await?)?;
    Ok(outcome.paused(delay.map(|delay| delay.0)))
}

pub(super) async fn forced(
    admin: &Admin,
    held: &HeldLock,
    reason: &str,
    delay: Option<Span>,
) -> Result<Forced, LockError> {
    match delay {
        Some(delay) => admin.force_pause(held, delay.0, reason).await,
        None => admin.force_release(held, reason).await,
    }
}

/// # Errors
/// When another holder has it by now.
pub(super) fn taken(held: &HeldLock, forced: Forced) -> Result<Outcome, Failure> {
    if forced == Forced::Released {
        // No one was at work whose run was done.
        let is_done = held.holder().kind() == HolderKind::Done;
        return Ok(Outcome::new(if is_done { "undone" } else { "forced" }, None));
    }
    let message = "the lock has changed hands meanwhile, and was not taken";
    Err(kept(message.to_owned()).about(held))
}
