//! What became of a lock that was to be released, as words and as JSON.

use std::time::Duration;

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Admin, HeldLock};
use serde::Serialize;

use crate::commands::next::Next;
use crate::output::escape::printable;
use crate::output::times::{milliseconds, short};
use crate::output::{json, write_line};

/// What became of the lock.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(rename = "outcome")]
    pub(super) what: &'static str,
    after_ms: Option<u64>,
    #[serde(skip)]
    after: Option<Duration>,
    /// For how long the lock stays taken by its `min_hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_ms: Option<u64>,
    #[serde(skip)]
    kept: Option<Duration>,
    /// For how long it is paused from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_ms: Option<u64>,
    #[serde(skip)]
    paused: Option<Duration>,
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

impl Outcome {
    pub(super) fn new(what: &'static str, after: Option<Duration>) -> Self {
        let after_ms = after.map(milliseconds);
        Self { what, after_ms, after, kept_ms: None, kept: None, paused_ms: None, paused: None }
    }

    /// Returns this outcome as that of a lock that is paused for this long.
    pub(super) fn paused(self, length: Option<Duration>) -> Self {
        Self { paused_ms: length.map(milliseconds), paused: length, ..self }
    }

    /// Names the outcome in a summary of many.
    pub(super) fn in_summary(&self) -> &'static str {
        match self.what {
            "forced" => "taken away",
            "undone" => "not done any more",
            "changed" => ENDED,
            _ => "released",
        }
    }

    /// Prints that the hold had ended before anything was sent.
    pub(super) fn print_ended(key: &str, name: &str, id: &str, json: bool) {
        let outcome = Self::new("changed", None);
        if json {
            json::print(&Line { key, name, id: id.to_owned(), outcome: &outcome, next: None });
        } else {
            write_line(&format!("{}: {id} no longer has it", printable(name)));
        }
    }

    pub(super) fn print(&self, held: &HeldLock, next: Option<Next<'_>>, json: bool) {
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
        let paused = self.paused.map(|length| format!("; no one gets it for {}", short(length)));
        write_line(&(done + &paused.unwrap_or_default() + &next));
    }
}

/// A lock with `min_hold` stays taken when its holder has stopped.
pub(super) async fn released(admin: &Admin, held: &HeldLock, after: Duration) -> Outcome {
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

/// What becomes of a holder whose lock was taken away.
fn hears(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Foreign => ", which is another library's and gets no message",
        HolderKind::KeptByMinHold | HolderKind::Done => ", which had released it",
        HolderKind::Paused => ", which was a pause",
        _ => {
            ", which stops when it gets the message; if it hangs, end it and what it has started by `kill -9`"
        }
    }
}

/// The summary of those that were not released by this command.
pub(super) const ENDED: &str = "no longer held so";
