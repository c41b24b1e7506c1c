//! `lockable ls`: the locks that are held.

use std::cmp::Reverse;

use lockable_runtime::LockError;
use lockable_runtime::admin::{HeldLock, Locks};
use lockable_runtime::{HeldSince, HolderKind};

use crate::arguments::{Connection, Ls};
use crate::connect;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::output::lock::{LockLine, held, holder, left, place};
use crate::output::progress::Progress;
use crate::output::{json, note, table::Table};

pub(crate) async fn ls(connection: &Connection, arguments: Ls, json: bool) -> Result<u8, Failure> {
    let admin = connect::locker(connection)?.admin();
    let directory = Directory::first_of(&admin).await?;
    // Who cannot count keys may list locks all the same.
    let keys = admin.count().await.unwrap_or_default();
    if !arguments.fast {
        warn_of_many(keys, json);
    }
    let mut locks = admin.locks();
    if let Some(pattern) = &arguments.pattern {
        locks = locks.matching(pattern);
    }
    if arguments.fast {
        locks = locks.unthrottled();
    }
    let listing = Listing { locks, progress: Progress::new(keys) };
    let Listed { count, failed } =
        if json { objects(listing, &directory).await } else { rows(listing, &directory).await };
    if let Some(error) = failed {
        return Err(error.into());
    }
    if count == 0 && !json {
        note(json, &none(connection, arguments.pattern.as_deref()));
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

/// What was looked for, and where.
fn none(connection: &Connection, pattern: Option<&str>) -> String {
    let (prefix, place) = (connect::prefix(connection), connect::place(connection));
    let (prefix, place) = (prefix.unwrap_or_default(), place.unwrap_or_default());
    let form = pattern.unwrap_or("*");
    let advice = if !prefix.is_empty() && form.starts_with(&prefix) {
        "; write the pattern without the prefix".to_owned()
    } else if !form.contains(['*', '?', '[']) {
        format!("; try: {}", connect::command(connection, "ls", &[&format!("{form}*")]))
    } else {
        String::new()
    };
    format!("no lock `{prefix}{form}` is held on {place}{advice}")
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

/// A listing, and how far it is.
struct Listing {
    locks: Locks,
    progress: Progress,
}

impl Listing {
    /// The next lock; meanwhile a terminal shows how far the listing is.
    async fn next(&mut self) -> Option<Result<HeldLock, LockError>> {
        loop {
            tokio::select! {
                biased;
                lock = self.locks.next() => {
                    self.progress.clear();
                    return lock;
                }
                () = self.progress.due() => self.progress.write(self.locks.scanned()),
            }
        }
    }
}

async fn objects(mut locks: Listing, directory: &Directory) -> Listed {
    let mut listed = Listed::default();
    while let Some(lock) = locks.next().await {
        match lock {
            Ok(lock) if !json::print(&LockLine::new(&lock, directory)) => return listed,
            Ok(_) => listed.count += 1,
            Err(error) => listed.fails(error),
        }
    }
    listed
}

/// Writes what has come whenever more has to be waited for.
async fn rows(mut locks: Listing, directory: &Directory) -> Listed {
    let (mut table, mut found, mut listed) = (Table::new(HEADINGS), Vec::new(), Listed::default());
    loop {
        let lock = tokio::select! {
            biased;
            lock = locks.next() => lock,
            () = std::future::ready(()) => {
                if !write(&mut table, &mut found, directory) {
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
                write(&mut table, &mut found, directory);
                return listed;
            }
        }
    }
}

/// Those that most wait for are first, and of these the one that was asked for first; `false` where no one reads it.
fn write(table: &mut Table<6>, found: &mut Vec<HeldLock>, directory: &Directory) -> bool {
    found.sort_by_key(|lock| {
        (Reverse(lock.queued()), lock.holder().held_since().map(HeldSince::earliest))
    });
    found.drain(..).for_each(|lock| table.add(row(&lock, directory)));
    table.flush()
}

fn row(lock: &HeldLock, directory: &Directory) -> [String; 6] {
    let it = lock.holder();
    let process = match it.kind() {
        HolderKind::Ticket => "-".to_owned(),
        _ => place(directory.find(it.process())),
    };
    [lock.name().to_owned(), holder(it), process, held(it), left(it), lock.queued().to_string()]
}

const HEADINGS: [&str; 6] = ["KEY", "HOLDER", "PROCESS", "HELD", "LEFT", "WAITING"];

/// From that many million keys on it is said how long it takes.
const MANY: u64 = 10;

/// With the pauses, as measured.
const SECONDS_PER_MILLION: u64 = 10;
