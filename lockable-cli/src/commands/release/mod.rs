//! `lockable release`: asks the holder of a lock to stop, and takes the lock away only where that is ordered.

mod asking;
mod chosen;
mod many;
mod outcome;
mod typed;

use lockable_runtime::HolderKind;
use lockable_runtime::admin::HeldLock;

pub(super) use self::asking::stopped;
use self::asking::{answer, force, kept};
use crate::arguments::{Connection, Release};
use crate::commands::liveness::LivenessCheck;
use crate::commands::next::{Next, next};
use crate::commands::{free, host, no_lock, user};
use crate::connect;
use crate::failure::Failure;
use crate::output::lock::holder;
use crate::process_index::ProcessIndex;

pub(crate) async fn release(
    connection: &Connection,
    arguments: Release,
    json: bool,
) -> Result<u8, Failure> {
    let admin = connect::locker(connection)?.admin();
    let reason = arguments.reason.clone().unwrap_or_else(usual_reason);
    let Some(key) = &arguments.key else {
        return many::of_file(connection, &admin, &arguments, &reason, json).await;
    };
    let held = admin.holder(key).await?;
    // A lock may be called as a pattern is written.
    if held.is_none() && !arguments.exact && key.contains(['*', '?', '[']) {
        return many::of_pattern(connection, &admin, &arguments, &reason, json).await;
    }
    let held = held.ok_or_else(|| free(&admin, connection, key))?;
    if held.holder().kind() == HolderKind::NoLock {
        return Err(no_lock(key));
    }
    check_id(&held, &arguments, connection)?;
    if held.holder().kind() == HolderKind::Paused && !arguments.force {
        let resume = connect::command(connection, "resume", &[held.name()]);
        let message = format!("it is {}; to end that: {resume}", holder(held.holder()));
        return Err(kept(message).of_lock(held.name()).about(&held));
    }
    // No one is at work that could be asked where a run is done.
    let outcome = if arguments.force || held.holder().kind() == HolderKind::Done {
        force(&admin, &held, &reason, arguments.delay).await?
    } else {
        let first = LivenessCheck::at(held.clone());
        let asked = admin.revoke(&held, &reason, arguments.grace.0).await?;
        let forced = |held: &HeldLock| typed::forced(held.holder().id());
        answer(&admin, &first, connection, asked, forced).await?
    };
    let (next, process_index) = (next(&admin, &held).await, ProcessIndex::of(&admin).await);
    outcome.print(&held, next.as_ref().map(|next| Next::of(next, &process_index)), json);
    Ok(0)
}

/// # Errors
/// When another hold is meant, or none is named where the lock is to be taken away.
fn check_id(held: &HeldLock, arguments: &Release, connection: &Connection) -> Result<(), Failure> {
    let now = held.holder().id();
    match arguments.id {
        None if arguments.force => {
            let message = "--force needs the --id of the hold, so that it never ends a later one";
            let who = holder(held.holder());
            let forced = typed::forced(now);
            Err(Failure::usage(format!("{message}; it is now {now} ({who}): {forced}")))
        }
        Some(id) if id != now => {
            let (who, show) =
                (holder(held.holder()), connect::command(connection, "show", &[held.name()]));
            let message = format!(
                "nothing was done: the lock is not that of {id}, {now} ({who}) has it; see {show}"
            );
            Err(kept(message).about(held))
        }
        _ => Ok(()),
    }
}

fn usual_reason() -> String {
    format!("{}@{}, by `lockable release`", user(), host())
}
