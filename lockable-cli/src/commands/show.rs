//! `lockable show`: one lock, its holder, and who waits.

use lockable_runtime::HolderKind;

use crate::arguments::{Connection, Show};
use crate::commands::look::Look;
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
    let look = Look::at(&admin, &arguments.key).await?;
    let look = look.ok_or_else(|| free(&admin, connection, &arguments.key))?;
    let Look { held, queue, directory, .. } = &look;
    if json {
        json::print(&LockLine::new(held, directory).with_queue(queue, directory));
    } else {
        look.facts().lines().iter().all(|line| write_line(line));
    }
    if held.holder().kind() == HolderKind::NoLock { Err(no_lock(&arguments.key)) } else { Ok(0) }
}
