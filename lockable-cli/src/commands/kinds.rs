//! Which locks a listing shows, by what is under their keys.

use lockable_runtime::admin::HeldLock;
use serde::Serialize;

use crate::arguments::{Connection, Ls};
use crate::connect;
use crate::output::lock::kind;
use crate::output::{json, note, write_error};

/// The kinds that are shown: those that were asked for, or all but the runs that are done. Each success leaves one of
/// those, and none of them has a holder.
pub(super) struct Kinds<'a> {
    arguments: &'a Ls,
    /// How many runs that are done the snapshot under way has left out.
    done: usize,
}

impl<'a> Kinds<'a> {
    pub(super) fn of(arguments: &'a Ls) -> Self {
        Self { arguments, done: 0 }
    }

    /// Whether a lock is shown; otherwise it is counted.
    pub(super) fn show(&mut self, lock: &HeldLock) -> bool {
        let (wanted, kind) = (&self.arguments.kinds, kind(lock.holder().kind()));
        if wanted.is_empty() && kind == DONE {
            self.done += 1;
            return false;
        }
        wanted.is_empty() || wanted.iter().any(|wanted| wanted == ALL || wanted == kind)
    }

    /// A new snapshot begins.
    pub(super) fn count_again(&mut self) {
        self.done = 0;
    }

    /// What was left out, behind the number of those that are shown; nothing where there is none.
    pub(super) fn foot(&self) -> String {
        if self.done == 0 { String::new() } else { format!(", {} done", self.done) }
    }

    /// Says how many were left out, and how to list them.
    pub(super) fn say(&self, connection: &Connection, is_json: bool) {
        let done = self.done;
        if done == 0 {
            return;
        }
        let pattern: Vec<_> = self.arguments.pattern.as_deref().into_iter().collect();
        let list = connect::command(connection, "ls --kind done", &pattern);
        let text = format!(
            "not listed: {done} that `once` keeps, because their runs are done; see {list}"
        );
        let object = is_json.then(|| json::line(&LeftOut { note: &text, done }).ok()).flatten();
        object.map_or_else(|| note(false, &text), |object| write_error(&object));
    }
}

#[derive(Serialize)]
struct LeftOut<'a> {
    note: &'a str,
    done: usize,
}

const DONE: &str = "done";

const ALL: &str = "all";

#[cfg(test)]
mod tests {
    use lockable_runtime::HolderKind;

    use super::*;
    use crate::arguments::KINDS;

    #[test]
    fn every_kind_can_be_asked_for() {
        let kinds = [
            HolderKind::Exclusive,
            HolderKind::KeptByMinHold,
            HolderKind::Done,
            HolderKind::Ticket,
            HolderKind::Paused,
            HolderKind::Foreign,
            HolderKind::NoLock,
        ];
        let names: Vec<_> = [ALL].into_iter().chain(kinds.map(kind)).collect();
        assert_eq!(names, KINDS);
    }
}
