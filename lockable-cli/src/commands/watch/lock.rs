//! `lockable show --watch`: one snapshot of a lock after the other, and at once where the server reports a change.

use lockable_runtime::admin::Admin;

use super::history::{Change, Entry, Extent, History, Sight};
use super::view::{MARKS, Trouble, View, bar, left, mark, time};
use super::{SHORTEST, check_pause, pause_after};
use crate::arguments::{Connection, Span};
use crate::clock::boot_time;
use crate::commands::changes::ChangeFeed;
use crate::commands::free;
use crate::commands::snapshot::Snapshot;
use crate::connect;
use crate::failure::Failure;
use crate::output::lock::LockLine;
use crate::output::screen::{Line, Tone};

/// Watches one lock until no one reads what it writes. A lock that is free may be held later.
pub(crate) async fn lock(
    connection: &Connection,
    key: &str,
    interval: Span,
    json: bool,
) -> Result<u8, Failure> {
    let interval = check_pause(interval)?;
    let admin = connect::locker(connection)?.admin();
    let view = View::new(json);
    let history = History::new(view.glance());
    let free = free(&admin, connection, key).message().to_owned();
    // No second connection is tried where no server replies.
    admin.holder(key).await?;
    let mut feed = ChangeFeed::of(&admin, key).await;
    let mut watch = Watch { admin: &admin, key, free, view, history, trouble: Trouble::default() };
    loop {
        let begun = boot_time();
        if !watch.look().await? {
            return Ok(0);
        }
        let took = boot_time().since(begun);
        feed.next(pause_after(took, SHORTEST), pause_after(took, interval)).await;
    }
}

struct Watch<'a> {
    admin: &'a Admin,
    key: &'a str,
    /// What is said while no one has the lock.
    free: String,
    view: View,
    history: History<Snapshot>,
    trouble: Trouble,
}

impl Watch<'_> {
    /// `false` where no one reads what is different.
    async fn look(&mut self) -> Result<bool, Failure> {
        let (extent, is_read) = match Snapshot::at(self.admin, self.key).await {
            Ok(snapshot) => {
                self.trouble.end(&self.view);
                (Extent::Whole, snapshot.is_none_or(|snapshot| self.see(snapshot)))
            }
            Err(error) if self.history.is_first() => return Err(error.into()),
            Err(error) => {
                self.trouble.note(error, &self.view)?;
                (Extent::Part, true)
            }
        };
        let mut is_read = is_read;
        for gone in self.history.end(extent, boot_time()) {
            is_read = is_read && self.view.event(Change::Gone, gone.lock.line());
        }
        Ok(is_read && self.show())
    }

    fn see(&mut self, snapshot: Snapshot) -> bool {
        let sight = Sight::of(&snapshot.held, snapshot.queue.clone());
        let change = self.history.see(self.key, snapshot, sight, boot_time());
        let entry = self.history.entries().next();
        let event = change.zip(entry);
        event.is_none_or(|(change, entry)| self.view.event(change, entry.lock.line()))
    }

    fn show(&mut self) -> bool {
        if matches!(self.view, View::Json) {
            return true;
        }
        let entry = self.history.entries().next();
        let mut lines = entry.map(lines).unwrap_or_default();
        if entry.is_none_or(|entry| entry.change() == Change::Gone) {
            lines.push(Line::plain(self.free.clone()));
        }
        let count = format!("at {}   {MARKS}", time());
        let foot = [String::new()].into_iter().chain(self.trouble.line()).chain([count]).collect();
        self.view.show(lines, foot)
    }
}

impl Snapshot {
    fn line(&self) -> LockLine<'_> {
        LockLine::new(&self.held, &self.process_index).with_queue(&self.queue, &self.process_index)
    }
}

/// The facts, with the marks of what is different and the bar behind what is left.
fn lines(entry: &Entry<Snapshot>) -> Vec<Line> {
    let (now, change, (sign, tone)) = (boot_time(), entry.change(), mark(entry.change()));
    let (of_rest, of_holder) = if change == Change::Renewed { (sign, "") } else { ("", sign) };
    let line = |text: String| match text.split_once(' ') {
        Some(("left", _)) if change != Change::Gone => {
            let (left, bar) = (left(entry, now), bar(entry, now));
            (format!("left     {left}  {bar}  {of_rest}"), Tone::Plain)
        }
        Some(("holder", _)) => (format!("{text}  {of_holder}"), tone),
        _ => (text, if tone == Tone::Faint { tone } else { Tone::Plain }),
    };
    let lines = entry.lock.facts().lines().into_iter().map(line);
    lines.map(|(text, tone)| Line { text: text.trim_end().to_owned(), tone }).collect()
}
