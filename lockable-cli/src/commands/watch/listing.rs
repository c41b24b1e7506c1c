//! `lockable ls --watch`: one listing after the other, each at the pace of `ls`.

use std::time::Duration;

use lockable_runtime::LockError;
use lockable_runtime::admin::{Admin, HeldLock};
use tokio::time::Instant;

use super::history::{Change, Entry, Extent, History, Sight};
use super::view::{MARKS, Trouble, View, bar, due, left, mark, time};
use super::{check_pause, pause_after};
use crate::arguments::{Connection, Ls, Span};
use crate::clock::boot_time;
use crate::commands::kinds::Kinds;
use crate::commands::liveness::pause;
use crate::commands::{locks, none};
use crate::connect;
use crate::failure::Failure;
use crate::output::lock::{LockLine, order, row};
use crate::output::progress;
use crate::output::screen::{Line, Tone};
use crate::output::table::Table;
use crate::process_index::ProcessIndex;

/// Watches the locks of a listing until no one reads what it writes.
pub(crate) async fn listing(
    connection: &Connection,
    arguments: &Ls,
    interval: Span,
    json: bool,
) -> Result<u8, Failure> {
    let interval = check_pause(interval)?;
    check_pattern(arguments.pattern.as_deref())?;
    let admin = connect::locker(connection)?.admin();
    let none = none(&admin, connection, arguments.pattern.as_deref(), &arguments.kinds);
    let mut watch = Watch::new(admin, arguments, none, View::new(json)).await?;
    let mut is_first = true;
    while watch.look().await? {
        if std::mem::take(&mut is_first) && !watch.view.is_terminal() {
            watch.kinds.say(connection, json);
        }

        // A listing has paused already; the list of connections comes in one piece.
        pause(pause_after(watch.process_index_took, interval)).await;
    }
    Ok(0)
}

/// # Errors
/// When the pause between two looks was written as the pattern.
fn check_pattern(pattern: Option<&str>) -> Result<(), Failure> {
    let is_pause = |text: &&str| text.ends_with(['s', 'm', 'h']) && text.parse::<Span>().is_ok();
    match pattern.filter(is_pause) {
        Some(pause) => Err(Failure::usage(format!(
            "`{pause}` would be the pattern of keys; for a pause between two looks write --watch={pause}"
        ))),
        None => Ok(()),
    }
}

struct Watch<'a> {
    admin: Admin,
    arguments: &'a Ls,
    kinds: Kinds<'a>,
    /// What is said where no lock is held.
    none: String,
    view: View,
    history: History<HeldLock>,
    process_index: ProcessIndex,
    process_index_took: Duration,
    table: Table<8>,
    trouble: Trouble,
    /// How many keys a listing scans, as far as is known.
    keys: u64,
    /// Whether it was said that the first look lasts. On a terminal each frame says so.
    is_announced: bool,
}

impl<'a> Watch<'a> {
    /// # Errors
    /// When no server replies.
    async fn new(
        admin: Admin,
        arguments: &'a Ls,
        none: String,
        view: View,
    ) -> Result<Self, Failure> {
        let process_index = ProcessIndex::first_of(&admin).await?;
        // Who cannot count keys may list locks all the same.
        let keys = admin.count().await.unwrap_or_default();
        let history = History::new(view.glance());
        let (table, trouble) = (Table::new(HEADINGS), Trouble::default());
        let process_index_took = Duration::ZERO;
        Ok(Self {
            admin,
            arguments,
            kinds: Kinds::of(arguments),
            none,
            view,
            history,
            process_index,
            process_index_took,
            table,
            trouble,
            keys,
            is_announced: false,
        })
    }

    /// Lists all locks; `false` where no one reads what is different.
    async fn look(&mut self) -> Result<bool, Failure> {
        let mut extent = self.connections().await?;
        if extent == Extent::Whole {
            match self.list().await? {
                Some(listed) => extent = listed,
                None => return Ok(false),
            }
        }
        if extent == Extent::Whole {
            self.trouble.end(&self.view);
        }
        let mut is_read = true;
        for gone in self.history.end(extent, boot_time()) {
            let line = LockLine::new(&gone.lock, &self.process_index);
            is_read = is_read && self.view.event(Change::Gone, line);
        }
        Ok(is_read && self.show(None))
    }

    /// Which processes there are. Where no server replies to that, a listing would wait as long.
    async fn connections(&mut self) -> Result<Extent, Failure> {
        let begun = boot_time();
        let found = ProcessIndex::first_of(&self.admin).await;
        self.process_index_took = boot_time().since(begun);
        match found {
            Ok(process_index) => self.process_index = process_index,
            Err(error) => {
                self.note(error)?;
                return Ok(Extent::Part);
            }
        }
        Ok(Extent::Whole)
    }

    /// How much was listed; `None` where no one reads it.
    async fn list(&mut self) -> Result<Option<Extent>, Failure> {
        let mut locks = locks(&self.admin, self.arguments);
        self.kinds.count_again();
        let (mut extent, mut drawn) = (Extent::Whole, Instant::now());
        loop {
            tokio::select! {
                biased;
                lock = locks.next() => match lock {
                    Some(Ok(lock)) if !self.see(&lock) => return Ok(None),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        extent = Extent::Part;
                        self.note(error)?;
                    }
                    None => return Ok(Some(extent)),
                },
                () = due(drawn), if !self.is_announced => {
                    drawn = Instant::now();
                    if !self.lasts(locks.scanned()) {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Shows how far a listing is: on a terminal again and again, elsewhere once; `false` where no one reads it.
    fn lasts(&mut self, scanned: u64) -> bool {
        if self.view.is_terminal() {
            return self.show(Some(scanned));
        }
        self.is_announced = true;
        self.view.note(&format!("the first look lasts: {}", progress::words(scanned, self.keys)));
        true
    }

    /// # Errors
    /// Where no snapshot has shown anything yet: a wrong password stays wrong.
    fn note(&mut self, error: LockError) -> Result<(), Failure> {
        if self.history.is_first() && self.history.entries().next().is_none() {
            return Err(error.into());
        }
        self.trouble.note(error, &self.view)
    }

    fn see(&mut self, lock: &HeldLock) -> bool {
        if !self.kinds.show(lock) {
            return true;
        }
        let sight = Sight::of(lock, Vec::new());
        let change = self.history.see(lock.name(), lock.clone(), sight, boot_time());
        change
            .is_none_or(|change| self.view.event(change, LockLine::new(lock, &self.process_index)))
    }

    /// Shows what is known; while a listing lasts, also how far it is.
    fn show(&mut self, scanned: Option<u64>) -> bool {
        if matches!(self.view, View::Json) {
            return true;
        }
        let mut entries: Vec<_> = self.history.entries().collect();
        entries.sort_by_key(|entry| order(&entry.lock));
        let tones = entries.iter().map(|entry| mark(entry.change()).1);
        let tones: Vec<_> = [Tone::Plain].into_iter().chain(tones).collect();
        for entry in &entries {
            self.table.add(cells(entry, &self.process_index));
        }
        let held = entries.iter().filter(|entry| entry.change() != Change::Gone).count();
        let is_empty = entries.is_empty();
        let table = self.table.draw().into_iter().zip(tones);
        let table = table.map(|(text, tone)| Line { text, tone }).filter(|_| !is_empty);
        let is_none = held == 0 && scanned.is_none() && !self.trouble.is_there();
        let none = is_none.then(|| Line::plain(self.none.clone()));
        self.view.show(table.chain(none).collect(), self.foot(held, scanned))
    }

    fn foot(&self, held: usize, scanned: Option<u64>) -> Vec<String> {
        let progress = scanned.map(|scanned| format!("; {}", progress::words(scanned, self.keys)));
        let progress = progress.unwrap_or_default();
        let locks = if held == 1 { "lock" } else { "locks" };
        let (done, now) = (self.kinds.foot(), time());
        let count = format!("{held} {locks}{done} at {now}{progress}   {MARKS}");
        self.trouble.line().into_iter().chain([count]).collect()
    }
}

fn cells(entry: &Entry<HeldLock>, process_index: &ProcessIndex) -> [String; 8] {
    let (now, (mark, _)) = (boot_time(), mark(entry.change()));
    let [name, holder, process, held, _, waiting] = row(&entry.lock, process_index);
    let of_hold = match entry.change() {
        Change::Gone => ["", "gone", "", ""].map(str::to_owned),
        _ => [held, left(entry, now), waiting, bar(entry, now)],
    };
    let [held, left, waiting, bar] = of_hold;
    // What a narrow terminal cuts off says the least.
    [mark.to_owned(), name, holder, process, held, left, waiting, bar]
}

const HEADINGS: [&str; 8] = [" ", "KEY", "HOLDER", "PROCESS", "HELD", "LEFT", "WAITING", ""];
