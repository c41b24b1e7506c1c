//! All that is known of one lock, as lines.

use std::time::Duration;

use lockable_runtime::admin::{HeldLock, Waiter};
use lockable_runtime::{HeldSince, Holder, HolderKind};

use super::escape::printable;
use super::lock::{holder, kind, left, place};
use super::table::Table;
use super::times::{iso, short, since};
use crate::process_index::{Known, ProcessIndex};

/// A lock, its holder and those who wait, as one snapshot shows them.
pub(crate) struct Facts<'a> {
    pub(crate) held: &'a HeldLock,
    pub(crate) queue: &'a [Waiter],
    pub(crate) process_index: &'a ProcessIndex,
    /// How far the server's clock is from this machine's, where that is known.
    pub(crate) clocks: Option<Duration>,
}

impl Facts<'_> {
    pub(crate) fn lines(&self) -> Vec<String> {
        let clocks = self.clocks.filter(|by| *by > CLOCKS).map(|by| {
            let by = short(by);
            format!("clocks   the server's and this machine's differ by {by}, so `held` may be wrong by as much")
        });
        let of_holder = of_holder(self.held, self.process_index);
        of_holder.chain(clocks).chain(waiters(self.queue, self.process_index)).collect()
    }
}

fn of_holder(
    held: &HeldLock,
    process_index: &ProcessIndex,
) -> impl Iterator<Item = String> + use<> {
    let it = held.holder();
    let facts = [
        ("key", held.key().as_str().to_owned()),
        ("holder", holder(it)),
        ("id", it.id().to_string()),
        ("kind", special(it.kind())),
        ("process", process(it, process_index)),
        ("held", since_when(it)),
        ("left", left(it)),
        ("waiting", held.queued().to_string()),
    ];
    let facts = facts.into_iter().filter(|(_, value)| !value.is_empty());
    facts.map(|(name, value)| format!("{name:8} {}", printable(&value)))
}

/// Nothing of a lock that is held as any other is.
fn special(of: HolderKind) -> String {
    if of == HolderKind::Exclusive { String::new() } else { kind(of).to_owned() }
}

fn process(holder: &Holder, process_index: &ProcessIndex) -> String {
    if matches!(holder.kind(), HolderKind::Ticket | HolderKind::Paused) {
        return String::new();
    }
    let known = process_index.find(holder.process());
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

fn waiters(queue: &[Waiter], process_index: &ProcessIndex) -> Vec<String> {
    if queue.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(["", "WAITING", "PROCESS", "SINCE", "LISTENS"]);
    for (number, waiter) in queue.iter().enumerate() {
        let since = waiter.waiting_since().map(|moment| short(since(moment)));
        let listens = waiter.is_listening().map(|it| if it { "yes" } else { "no" });
        table.add([
            (number + 1).to_string(),
            waiter.request_id().unwrap_or("-").to_owned(),
            place(process_index.find(waiter.process())),
            since.unwrap_or_else(|| "unknown".to_owned()),
            listens.unwrap_or("unknown").to_owned(),
        ]);
    }
    let note = "Each line is one process. The server does not know how many of its calls wait.";
    [vec![String::new()], table.draw(), vec![note.to_owned()]].concat()
}

/// From here on a difference of clocks shows in the times.
const CLOCKS: Duration = Duration::from_secs(1);
