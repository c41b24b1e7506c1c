//! `lockable resume`: the end of a pause.

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Admin, Forced, HeldLock};
use serde::Serialize;

use super::{MOST_PERMITS, is_paused, names};
use crate::arguments::{Connection, Resume};
use crate::commands::next::{Next, next};
use crate::commands::{free, no_lock};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::escape::printable;
use crate::output::lock::holder;
use crate::output::{json, write_line};
use crate::process_index::ProcessIndex;

pub(crate) async fn resume(
    connection: &Connection,
    arguments: Resume,
    json: bool,
) -> Result<u8, Failure> {
    let admin = connect::locker(connection)?.admin();
    let paused = paused(connection, &admin, &arguments.key).await?;
    for held in &paused {
        // What has ended by itself meanwhile is resumed too.
        let is_own = admin.force_release(held, "resumed").await? == Forced::Released;
        let next = next(&admin, held).await;
        let process_index = match &next {
            Some(_) => ProcessIndex::of(&admin).await,
            None => ProcessIndex::unknown(),
        };
        print(held, is_own, next.as_ref().map(|next| Next::of(next, &process_index)), json);
    }
    Ok(0)
}

/// The lock of the key, and its permits, as far as they are paused.
///
/// # Errors
/// When there is none.
async fn paused(
    connection: &Connection,
    admin: &Admin,
    key: &str,
) -> Result<Vec<HeldLock>, Failure> {
    let lock = admin.holder(key).await?;
    let mut paused: Vec<_> = lock.clone().filter(is_paused).into_iter().collect();
    for name in names(admin, key, Some(MOST_PERMITS)) {
        paused.extend(admin.holder(&name).await?.filter(is_paused));
    }
    match lock {
        _ if !paused.is_empty() => Ok(paused),
        None => Err(free(admin, connection, key)),
        Some(held) if held.holder().kind() == HolderKind::NoLock => Err(no_lock(key)),
        Some(held) => {
            let (id, who) = (held.holder().id(), holder(held.holder()));
            let message = format!("the lock is not paused: {id} ({who}) has it");
            Err(Failure::new("not-paused", code::FREE, message).of_lock(key).about(&held))
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    name: &'a str,
    id: String,
    outcome: &'static str,
    next: Option<Next<'a>>,
}

fn print(held: &HeldLock, is_own: bool, next: Option<Next<'_>>, json: bool) {
    let (name, id) = (held.name(), held.holder().id().to_string());
    if json {
        let outcome = if is_own { "resumed" } else { "changed" };
        json::print(&Line { key: held.key().as_str(), name, id, outcome, next });
        return;
    }
    let done = if is_own { "resumed" } else { "the pause had ended already" };
    let next = next.map(|next| next.words).unwrap_or_default();
    write_line(&printable(&format!("{name}: {done}{next}")));
}
