//! `lockable show`: one lock, its holder, and who waits.

use lockable_runtime::HolderKind;

use crate::arguments::{Connection, Show};
use crate::commands::snapshot::Snapshot;
use crate::commands::{free, no_lock, watch};
use crate::connect;
use crate::failure::Failure;
use crate::output::lock::LockLine;
use crate::output::{json, write_line};

pub(crate) async fn show(
    connection: &Connection,
    arguments: Show,
    json: bool,
) -> Result<u8, Failure> {
    if let Some(pause) = arguments.watch {
        return watch::until_interrupted(watch::lock(connection, &arguments.key, pause, json))
            .await;
    }
    let admin = connect::locker(connection)?.admin();
    let snapshot = Snapshot::at(&admin, &arguments.key).await?;
    let snapshot = snapshot.ok_or_else(|| free(&admin, connection, &arguments.key))?;
    let Snapshot { held, queue, process_index, .. } = &snapshot;
    if json {
        json::print(&LockLine::new(held, process_index).with_queue(queue, process_index));
    } else {
        snapshot.facts().lines().iter().all(|line| write_line(line));
    }
    if held.holder().kind() == HolderKind::NoLock { Err(no_lock(&arguments.key)) } else { Ok(0) }
}
