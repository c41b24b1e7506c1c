//! `lockable show`: one lock, its holder, and who waits.

use std::time::Duration;

use lockable_runtime::admin::{HeldLock, Waiter};
use lockable_runtime::{HeldSince, Holder, HolderKind};

use crate::arguments::{Connection, Show};
use crate::commands::{free, no_lock};
use crate::connect;
use crate::directory::{Directory, Known};
use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::lock::{LockLine, holder, kind, left, place};
use crate::output::table::Table;
use crate::output::times::{iso, short, since};
use crate::output::{json, write_line};

pub(crate) async fn show(
    connection: &Connection,
    arguments: Show,
    json: bool,
) -> Result<u8, Failure> {
    let admin = connect::locker(connection)?.admin();
    let held = admin.holder(&arguments.key).await?;
    let held = held.ok_or_else(|| free(connection, &arguments.key))?;
    let (queue, directory) = (admin.queue(&arguments.key).await?, Directory::of(&admin).await);
    // A server that does not say its time is no failure.
    let clocks = admin.clock_difference().await.ok().flatten();
    if json {
        json::print(&LockLine::new(&held, &directory).with_queue(&queue, &directory));
    } else {
        facts(&held, &directory);
        if let Some(by) = clocks.filter(|by| *by > CLOCKS) {
            let by = short(by);
            write_line(&format!(
                "clocks   the server's and this machine's differ by {by}, so `held` may be wrong by as much"
            ));
        }
        waiters(&queue, &directory);
    }
    if held.holder().kind() == HolderKind::NoLock { Err(no_lock(&arguments.key)) } else { Ok(0) }
}

fn facts(held: &HeldLock, directory: &Directory) {
    let it = held.holder();
    let facts = [
        ("key", held.key().as_str().to_owned()),
        ("holder", holder(it)),
        ("id", it.id().to_string()),
        ("kind", special(it.kind())),
        ("process", process(it, directory)),
        ("held", since_when(it)),
        ("left", left(it)),
        ("waiting", held.queued().to_string()),
    ];
    for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
        write_line(&format!("{name:8} {}", printable(&value)));
    }
}

/// Nothing of a lock that is held as any other is.
fn special(of: HolderKind) -> String {
    if of == HolderKind::Exclusive { String::new() } else { kind(of).to_owned() }
}

fn process(holder: &Holder, directory: &Directory) -> String {
    if holder.kind() == HolderKind::Ticket {
        return String::new();
    }
    let known = directory.find(holder.process());
    // Alone, six digits would be taken for a pid.
    let Known::Connected(process) = known else { return place(known) };
    let id = process.id();
    let address = process.address().map(|address| format!(", from {address}"));
    let age = short(process.connected_for());
    format!("{} ({id}){}, connected for {age}", place(known), address.unwrap_or_default())
}

fn since_when(holder: &Holder) -> String {
    match holder.held_since() {
        Some(HeldSince::At(moment)) => format!("{}, since {}", short(since(moment)), iso(moment)),
        Some(HeldSince::NotBefore(moment)) => {
            format!("at most {}: waited from {} on", short(since(moment)), iso(moment))
        }
        _ => "unknown".to_owned(),
    }
}

fn waiters(queue: &[Waiter], directory: &Directory) {
    if queue.is_empty() {
        return;
    }
    let mut table = Table::new(["", "WAITING", "PROCESS", "SINCE", "LISTENS"]);
    for (number, waiter) in queue.iter().enumerate() {
        let since = waiter.waiting_since().map(|moment| short(since(moment)));
        let listens = waiter.is_listening().map(|it| if it { "yes" } else { "no" });
        table.add([
            (number + 1).to_string(),
            waiter.request_id().unwrap_or("-").to_owned(),
            place(directory.find(waiter.process())),
            since.unwrap_or_else(|| "unknown".to_owned()),
            listens.unwrap_or("unknown").to_owned(),
        ]);
    }
    write_line("");
    table.flush();
    write_line("Each line is one process. The server does not know how many of its calls wait.");
}

/// From here on a difference of clocks shows in the times.
const CLOCKS: Duration = Duration::from_secs(1);
