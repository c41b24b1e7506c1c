//! Waiting without polling: the calls of this process form a line for each lock, and take turns. A table of who holds
//! each lock, waits for it and tries for it saves the others their requests.
//!
//! See "How does a call wait in the FIFO queue?" in DESIGN.md, and "What do the words of the code mean?" in DESIGN.md.

use std::sync::Arc;

use tokio::sync::oneshot;

use self::line::{Behind, Line, WaitingCall};
use self::table::EntryRole;
use crate::core::process::clock::Moment;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;
use crate::core::types::line_key::LineKey;
use crate::core::types::options::{Options, Wait};
use crate::core::types::owner::Held;

pub(crate) use self::entry::Entry;
pub(crate) use self::line::{Granted, LastReply, RECHECK_INTERVAL};
pub(crate) use self::lines::Lines;
pub(crate) use self::table::Admission;
pub(crate) use self::turn::Turn;

mod entry;
mod line;
mod lines;
mod table;
#[cfg(test)]
mod tests;
mod turn;

impl Lines {
    pub(crate) fn enter(
        self: &Arc<Self>,
        key: &LockKey,
        wait: Wait,
        now: Moment,
    ) -> (Admission, Entry) {
        let (way, at) = self.table.enter(key, wait, now);
        let role = match way {
            Admission::Tries => EntryRole::Tries,
            Admission::Joins { .. } => EntryRole::Waits,
            Admission::IsBusy => EntryRole::IsOver,
        };
        (way, Entry::new(self, at, role))
    }

    /// The entry of a call that waits for no other of its locker: it is alone with its local permit, or has a ticket.
    pub(crate) fn enter_alone(self: &Arc<Self>, line: &LineKey) -> Entry {
        Entry::new(self, self.table.new_id(line), EntryRole::IsOver)
    }

    #[cfg(test)]
    pub(crate) fn trying(&self, key: &LockKey) -> usize {
        self.table.trying(key)
    }

    pub(crate) fn waiting(&self, key: &LockKey) -> usize {
        self.look(&LineKey::Lock(key.clone()), Line::len).unwrap_or_default()
    }

    pub(crate) fn last_reply(&self, line: &LineKey) -> LastReply {
        self.look(line, |line| line.last_reply.clone()).unwrap_or(LastReply::Nothing)
    }

    /// What has its lock without a holder, by the latest answer to the calls that wait in the line.
    pub(crate) fn obstacle(&self, line: &LineKey) -> Option<Arc<Held>> {
        self.look(line, |line| line.attempt()?.obstacle()).flatten()
    }

    /// Joins the line, behind those who came before, whose numbers are lower; returns the turn when it comes.
    ///
    /// # Cancel safety
    /// A waiter that is dropped leaves its line at once, and a turn that arrives while it leaves is passed to the next
    /// waiter.
    pub(crate) fn turn<'a>(
        self: &'a Arc<Self>,
        line: &'a LineKey,
        (entry, options): (&Entry, &Options),
        last_reply: LastReply,
    ) -> impl Future<Output = Result<Turn, LockError>> + Send + use<'a> {
        let (sender, answer) = oneshot::channel();
        let Options { ttl, fair: is_fair, label, .. } = *options;
        let number = entry.number();
        let (identity, is_once) = (options.identity.clone(), options.once.is_some());
        let waiter = WaitingCall { number, ttl, is_fair, is_once, identity, label, answer: sender };
        self.on(line, |calls, now| {
            // Under the lock of the line: a try that ends later finds the call there.
            let is_first = calls.len() == 0 && matches!(last_reply, LastReply::Nothing);
            let behind = if is_first { entry.behind(line, now) } else { Behind::Holder };
            calls.joined(waiter, last_reply, behind, now);
        });
        let place = LinePlace { lines: self, line, number, is_over: false };
        // No async fn, which would store the arguments for as long as it waits.
        async move {
            // All of it, not its fields alone: it is dropped with this future.
            let mut place = place;
            let answer = answer.await;
            place.is_over = true;
            // The sender is never dropped unused.
            let unused = |_| LockError::new(LockErrorKind::Unavailable, "the line was given up");
            Ok(Turn::new(Arc::clone(place.lines), answer.map_err(unused)??))
        }
    }
}

struct LinePlace<'a> {
    lines: &'a Arc<Lines>,
    line: &'a LineKey,
    number: u64,
    is_over: bool,
}

impl Drop for LinePlace<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.lines.context.is_inherited() {
            self.lines.act(self.line, |line, now| line.left(self.number, now));
        }
    }
}
