//! `lockable ls`: the locks that are held.

use lockable_runtime::LockError;
use lockable_runtime::admin::{HeldLock, Locks};

use crate::arguments::{Connection, Ls};
use crate::commands::kinds::Kinds;
use crate::commands::{HEADINGS, locks, none, watch};
use crate::connect;
use crate::failure::Failure;
use crate::output::lock::{LockLine, order, row};
use crate::output::progress::Progress;
use crate::output::{json, note, table::Table};
use crate::process_index::ProcessIndex;

pub(crate) async fn ls(connection: &Connection, arguments: Ls, json: bool) -> Result<u8, Failure> {
    if let Some(pause) = arguments.watch {
        let watched = watch::listing(connection, &arguments, pause, json);
        return watch::until_interrupted(watched).await;
    }
    let admin = connect::locker(connection)?.admin();
    let process_index = ProcessIndex::first_of(&admin).await?;
    // Who cannot count keys may list locks all the same.
    let keys = admin.count().await.unwrap_or_default();
    if !arguments.fast {
        warn_of_many(keys, json);
    }
    let (locks, progress) = (locks(&admin, &arguments), Progress::new(keys));
    let mut listing = Listing { locks, kinds: Kinds::of(&arguments), progress };
    let listed = if json {
        objects(&mut listing, &process_index).await
    } else {
        rows(&mut listing, &process_index).await
    };
    if listed.count == 0 && listed.failed.is_none() && !json {
        let pattern = arguments.pattern.as_deref();
        note(json, &none(&admin, connection, pattern, &arguments.kinds));
    }
    listing.kinds.say(connection, json);
    if let Some(error) = listed.failed {
        return Err(error.into());
    }
    Ok(0)
}

/// What came of a listing. Where one node of a cluster gives no answer, the others are listed.
#[derive(Default)]
struct Listed {
    count: usize,
    /// The first failure.
    failed: Option<LockError>,
}

impl Listed {
    fn fails(&mut self, error: LockError) {
        self.failed.get_or_insert(error);
    }
}

fn warn_of_many(keys: u64, json: bool) {
    let millions = keys / 1_000_000;
    if millions >= MANY {
        let minutes = (millions * SECONDS_PER_MILLION).div_ceil(60);
        let long = format!(
            "the server has {millions} million keys; the listing takes about {minutes} minutes"
        );
        note(json, &format!("{long}; --fast is faster, and loads the server more"));
    }
}

/// A listing, what of it is shown, and how far it is.
struct Listing<'a> {
    locks: Locks,
    kinds: Kinds<'a>,
    progress: Progress,
}

impl Listing<'_> {
    /// The next lock that is shown; meanwhile a terminal shows how far the listing is.
    async fn next(&mut self) -> Option<Result<HeldLock, LockError>> {
        loop {
            tokio::select! {
                biased;
                lock = self.locks.next() => {
                    if !matches!(&lock, Some(Ok(lock)) if !self.kinds.show(lock)) {
                        self.progress.clear();
                        return lock;
                    }
                }
                () = self.progress.due() => self.progress.write(self.locks.scanned()),
            }
        }
    }
}

async fn objects(locks: &mut Listing<'_>, process_index: &ProcessIndex) -> Listed {
    let mut listed = Listed::default();
    while let Some(lock) = locks.next().await {
        match lock {
            Ok(lock) if !json::print(&LockLine::new(&lock, process_index)) => return listed,
            Ok(_) => listed.count += 1,
            Err(error) => listed.fails(error),
        }
    }
    listed
}

/// Writes what has come whenever more has to be waited for.
async fn rows(locks: &mut Listing<'_>, process_index: &ProcessIndex) -> Listed {
    let (mut table, mut found, mut listed) = (Table::new(HEADINGS), Vec::new(), Listed::default());
    loop {
        let lock = tokio::select! {
            biased;
            lock = locks.next() => lock,
            () = std::future::ready(()) => {
                if !write(&mut table, &mut found, process_index) {
                    return listed;
                }
                locks.next().await
            }
        };
        match lock {
            Some(Ok(lock)) => {
                listed.count += 1;
                found.push(lock);
            }
            Some(Err(error)) => listed.fails(error),
            None => {
                write(&mut table, &mut found, process_index);
                return listed;
            }
        }
    }
}

/// Those that most wait for are first, and of these the one that was asked for first; `false` where no one reads it.
fn write(table: &mut Table<6>, found: &mut Vec<HeldLock>, process_index: &ProcessIndex) -> bool {
    found.sort_by_key(order);
    found.drain(..).for_each(|lock| table.add(row(&lock, process_index)));
    table.flush()
}

/// From that many million keys on it is said how long it takes.
const MANY: u64 = 10;

/// With the pauses, as measured.
const SECONDS_PER_MILLION: u64 = 10;
