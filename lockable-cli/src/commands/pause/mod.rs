//! `lockable pause` and `lockable resume`: a lock that is taken without a process that holds it.
//!
//! See "How does a pause keep a lock taken?" in DESIGN.md.

mod resume;
mod way;

use std::future::Future;
use std::process;
use std::time::Duration;

use lockable_runtime::admin::{Admin, HeldLock};
use lockable_runtime::{HolderKind, LockError, LockGuard, LockSet, Locker, RequestId, shutdown};

pub(crate) use self::resume::resume;
use self::way::Way;
use crate::arguments::{Connection, Pause};
use crate::commands::{host, no_lock, user};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::escape::printable;
use crate::output::lock::{LockLine, holder};
use crate::output::times::short;
use crate::output::{json, note, write_line};
use crate::process_index::ProcessIndex;

pub(crate) async fn pause(
    connection: &Connection,
    arguments: Pause,
    asked_to_end: impl Future<Output = i32>,
    json: bool,
) -> Result<u8, Failure> {
    check(connection, &arguments)?;
    let locker = connect::locker(connection)?;
    let admin = locker.admin();
    let names = names(&admin, &arguments.key, arguments.permits);
    let by = format!("{}@{}", user(), host());
    let reason = arguments.reason.clone().unwrap_or_else(|| format!("by {by}"));
    // By it the command knows its own holds.
    let own = RequestId::new(format!("{PAUSES}{by}:{}", process::id()));
    let length = arguments.length.0;
    let way = Way { admin: &admin, connection, names: &names, own: &own, reason: &reason, length };
    if !arguments.now {
        way.look(json).await?;
    }
    let held = tokio::select! {
        biased;
        number = asked_to_end => Err(given_up(number)),
        held = own.scope(acquire(&locker, &arguments, &way)) => held,
    };
    let paused = match held {
        Ok(held) => held.pause(length, &reason).await.map_err(Failure::from),
        Err(failure) => Err(failure),
    };
    // What is given up leaves the queue.
    if paused.is_err() {
        shutdown(LEAVES_WITHIN).await.ok();
    }
    paused?;
    print(&admin, &names, json).await
}

/// What a signal ends before the lock is paused.
fn given_up(number: i32) -> Failure {
    let number = u8::try_from(number).unwrap_or_default();
    Failure::new(
        "interrupted",
        code::SIGNAL.saturating_add(number),
        "interrupted: nothing is paused",
    )
}

/// # Errors
/// When no lock can be paused so.
fn check(connection: &Connection, arguments: &Pause) -> Result<(), Failure> {
    let key = &arguments.key;
    if !arguments.exact && key.contains(['*', '?', '[']) {
        let list = connect::command(connection, "ls", &[key]);
        let message = format!(
            "a pause is of one lock: nothing keeps calls for keys out that no one knows yet. Pause the keys that are in \
             use, one by one ({list}); or let the processes acquire nothing new, with `Locker::drain`; or let all \
             calls take a permit of one key too, and pause that with --permits. --exact pauses the lock `{key}`"
        );
        return Err(Failure::usage(message));
    }
    if arguments.length.0 > LONGEST {
        return Err(Failure::usage("--for is at most 24h; pause the lock again before its end"));
    }
    if arguments.length.0 < SHORTEST {
        return Err(Failure::usage("--for must be at least 10ms"));
    }
    Ok(())
}

/// The names of the locks: that of the key; or those of its permits, behind that of the gate before them.
fn names(admin: &Admin, key: &str, permits: Option<u32>) -> Vec<String> {
    let Some(count) = permits else { return vec![key.to_owned()] };
    let has_tag = admin.prefix().contains('{') || key.contains('{');
    let family = if has_tag { key.to_owned() } else { format!("{{{key}}}") };
    (0..=count.min(MOST_PERMITS)).map(|number| format!("{family}#{number}")).collect()
}

fn is_paused(held: &HeldLock) -> bool {
    held.holder().kind() == HolderKind::Paused
}

/// What is held before it is paused.
enum Held {
    One(LockGuard),
    All(LockSet),
}

impl Held {
    async fn pause(self, length: Duration, reason: &str) -> Result<(), LockError> {
        match self {
            Self::One(guard) => guard.into_pause(length, reason).await,
            Self::All(locks) => locks.into_pauses(length, reason).await,
        }
    }
}

/// Waits for the lock; with --now while its holder is asked to stop.
async fn acquire(locker: &Locker, arguments: &Pause, way: &Way<'_>) -> Result<Held, Failure> {
    let in_the_way = async {
        if arguments.now {
            way.clear(arguments.grace.0).await?;
        }
        way.overtaken().await
    };
    tokio::select! {
        biased;
        held = wait(locker, arguments) => held.map_err(|error| not_paused(error, arguments.now)),
        overtaken = in_the_way => overtaken,
    }
}

/// A lock that did not come, and what that leaves.
fn not_paused(error: LockError, asks: bool) -> Failure {
    let rest = if error.is_busy() && asks {
        "; nothing is paused; its holder may have been asked to stop, and then the next that waits has the lock"
    } else {
        "; nothing is paused"
    };
    Failure::from(error).followed_by(rest)
}

async fn wait(locker: &Locker, arguments: &Pause) -> Result<Held, LockError> {
    macro_rules! acquired {
        ($request:expr) => {{
            let request = $request.expire(LEASE).renew();
            match arguments.wait {
                Some(limit) => request.wait(limit.0).acquire().await?,
                None => request.acquire().await?,
            }
        }};
    }
    Ok(match arguments.permits {
        None => Held::One(acquired!(locker.lock(&arguments.key))),
        Some(count) => Held::All(acquired!(locker.lock(&arguments.key).all_permits(count))),
    })
}

impl Way<'_> {
    /// Says what is waited for.
    ///
    /// # Errors
    /// When the lock is paused already, so that this would wait for the end of that.
    async fn look(&self, json: bool) -> Result<(), Failure> {
        for name in self.names {
            let Some(held) = self.admin.holder(name).await? else { continue };
            let it = held.holder();
            if it.kind() == HolderKind::NoLock {
                return Err(no_lock(name));
            }
            if is_paused(&held) {
                let message = "the lock has a pause already";
                return Err(self.is_paused_already(
                    &held,
                    message,
                    "; with --now this pause takes its place",
                ));
            }
            let left = it.remaining().map_or_else(|| "no end".to_owned(), short);
            let (id, who) = (it.id(), holder(it));
            // No one is at work in a run that is done.
            let now = if it.kind() == HolderKind::Done { "" } else { "; --now asks it to stop" };
            let message =
                format!("waits for `{name}`, which {id} ({who}) holds, with {left} left{now}");
            note(json, &message);
        }
        Ok(())
    }
}

/// Prints the pauses as they are now.
async fn print(admin: &Admin, names: &[String], json: bool) -> Result<u8, Failure> {
    for name in names {
        let Some(held) = admin.holder(name).await?.filter(is_paused) else { continue };
        if json {
            json::print(&LockLine::new(&held, &ProcessIndex::unknown()));
        } else {
            write_line(&printable(&format!("{name}: {}", holder(held.holder()))));
        }
    }
    Ok(0)
}

/// Before the names of those who pause a lock, as its holders for a moment.
const PAUSES: &str = "pause:";

/// Until it is paused; long enough for a slow network.
const LEASE: Duration = Duration::from_secs(30);

/// As the library has it, which checks it when the lock is there.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const MOST_PERMITS: u32 = 64;

const LEAVES_WITHIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_names_are_those_of_the_permits() {
        for (prefix, key) in [("", "a"), ("shop:", "a"), ("{shop}:", "a"), ("", "{a}:b")] {
            let locker = Locker::builder().url("memory://").prefix(prefix).connect_lazy().unwrap();
            let names = names(&locker.admin(), key, Some(2));
            let permit = locker.lock(key).permits(2).acquire().await.unwrap();
            assert_eq!(permit.lease().key().as_str(), format!("{prefix}{}", names[1]));
            assert_eq!(names.len(), 3);
        }
    }
}
