//! One lock, its holder and those who wait for it, as words and as JSON.

use std::cmp::Reverse;
use std::time::SystemTime;

use lockable_runtime::admin::{HeldLock, Process, ProcessId, Waiter};
use lockable_runtime::{HeldSince, Holder, HolderKind};
use serde::Serialize;

use super::times::{iso, milliseconds, short, since};
use crate::process_index::{Known, ProcessIndex};

/// A lock of a listing as JSON. Of a lock that came by the queue, `held_ms` is the most that it can be.
#[derive(Serialize)]
pub(crate) struct LockLine<'a> {
    key: &'a str,
    name: &'a str,
    id: String,
    kind: &'static str,
    request_id: Option<&'a str>,
    process: Option<ProcessLine<'a>>,
    held_since: Option<String>,
    held_ms: Option<u64>,
    from_queue: bool,
    remaining_ms: Option<u64>,
    /// Why it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    waiting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<Vec<WaiterLine<'a>>>,
}

#[derive(Serialize)]
struct WaiterLine<'a> {
    request_id: Option<&'a str>,
    process: Option<ProcessLine<'a>>,
    waiting_since: Option<String>,
    waited_ms: Option<u64>,
    listening: Option<bool>,
}

/// Where the server does not say who is connected, `connected` is `null`.
#[derive(Serialize)]
pub(crate) struct ProcessLine<'a> {
    id: String,
    connected: Option<bool>,
    service: Option<&'a str>,
    host: Option<&'a str>,
    pid: Option<u32>,
    address: Option<&'a str>,
}

impl<'a> LockLine<'a> {
    pub(crate) fn new(lock: &'a HeldLock, process_index: &'a ProcessIndex) -> Self {
        let holder = lock.holder();
        let held_since = holder.held_since().map(HeldSince::earliest);
        Self {
            key: lock.key().as_str(),
            name: lock.name(),
            id: holder.id().to_string(),
            kind: kind(holder.kind()),
            request_id: holder.request_id(),
            process: ProcessLine::of(holder.process(), process_index),
            held_since: held_since.map(iso),
            held_ms: held_since.map(|moment| milliseconds(since(moment))),
            from_queue: matches!(holder.held_since(), Some(HeldSince::NotBefore(_))),
            remaining_ms: holder.remaining().map(milliseconds),
            reason: holder.pause_reason(),
            waiting: lock.queued(),
            queue: None,
        }
    }

    pub(crate) fn with_queue(
        mut self,
        queue: &'a [Waiter],
        process_index: &'a ProcessIndex,
    ) -> Self {
        let line = |waiter: &'a Waiter| WaiterLine {
            request_id: waiter.request_id(),
            process: ProcessLine::of(waiter.process(), process_index),
            waiting_since: waiter.waiting_since().map(iso),
            waited_ms: waiter.waiting_since().map(|moment| milliseconds(since(moment))),
            listening: waiter.is_listening(),
        };
        self.queue = Some(queue.iter().map(line).collect());
        self
    }
}

impl<'a> ProcessLine<'a> {
    /// `None` where a lock does not say which process has it.
    pub(crate) fn of(id: Option<ProcessId>, process_index: &'a ProcessIndex) -> Option<Self> {
        let (found, connected) = match process_index.find(id) {
            Known::Connected(process) => (Some(process), Some(true)),
            Known::NotConnected => (None, Some(false)),
            Known::Unknown => (None, None),
        };
        Some(Self {
            id: id?.to_string(),
            connected,
            service: found.map(Process::service),
            host: found.map(Process::host),
            pid: found.map(Process::pid),
            address: found.and_then(Process::address),
        })
    }
}

/// The cells of a lock in a list: its name, its holder and its process, how long it is held and lasts, and who waits.
pub(crate) fn row(lock: &HeldLock, process_index: &ProcessIndex) -> [String; 6] {
    let it = lock.holder();
    let process = match it.kind() {
        HolderKind::Ticket | HolderKind::Paused => "-".to_owned(),
        _ => place(process_index.find(it.process())),
    };
    [lock.name().to_owned(), holder(it), process, held(it), left(it), lock.queued().to_string()]
}

/// Those that most wait for are first, and of these the one that was asked for first.
pub(crate) fn order(lock: &HeldLock) -> (Reverse<usize>, Option<SystemTime>) {
    (Reverse(lock.queued()), lock.holder().held_since().map(HeldSince::earliest))
}

pub(crate) fn kind(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Exclusive => "exclusive",
        HolderKind::KeptByMinHold => "kept-by-min-hold",
        HolderKind::Done => "done",
        HolderKind::Ticket => "ticket",
        HolderKind::Paused => "paused",
        HolderKind::Foreign => "foreign",
        HolderKind::NoLock => "no-lock",
        _ => "other",
    }
}

/// Who has it, in the words of a column.
pub(crate) fn holder(holder: &Holder) -> String {
    match holder.kind() {
        HolderKind::KeptByMinHold => "kept by min_hold".to_owned(),
        HolderKind::Done => "done".to_owned(),
        HolderKind::Ticket => until("ticket,", holder),
        HolderKind::Paused => paused(holder),
        HolderKind::Foreign => "another library".to_owned(),
        HolderKind::NoLock => "data that is no lock".to_owned(),
        _ => holder.request_id().unwrap_or("-").to_owned(),
    }
}

fn paused(holder: &Holder) -> String {
    let (until, reason) = (until("paused", holder), holder.pause_reason().unwrap_or_default());
    if reason.is_empty() { until } else { format!("{until}: {reason}") }
}

/// No process has the lock, so that its time is what matters.
fn until(what: &str, holder: &Holder) -> String {
    let end = holder.remaining().and_then(|rest| SystemTime::now().checked_add(rest));
    end.map_or_else(
        || what.trim_matches(',').to_owned(),
        |end| format!("{what} until {}", iso(end)),
    )
}

/// `5.0s`, or `<5.0s` for a lock that was waited for.
pub(crate) fn held(holder: &Holder) -> String {
    match holder.held_since() {
        Some(HeldSince::At(moment)) => short(since(moment)),
        Some(HeldSince::NotBefore(moment)) => format!("<{}", short(since(moment))),
        _ => "unknown".to_owned(),
    }
}

pub(crate) fn left(holder: &Holder) -> String {
    holder.remaining().map_or_else(|| "no end".to_owned(), short)
}

/// `shop@web-3:4711`, where its connections say so.
pub(crate) fn place(known: Known<'_>) -> String {
    match known {
        Known::Connected(process) => {
            format!("{}@{}:{}", process.service(), process.host(), process.pid())
        }
        Known::NotConnected => "not connected".to_owned(),
        Known::Unknown => "unknown".to_owned(),
    }
}
