//! Waiting for the releases of the whole process, at its end.

use std::sync::Weak;
use std::time::Duration;

use super::{Deferred, Releaser};
use crate::background::background;
use crate::types::clock::{timer_on, within};
use crate::types::error::{LockError, LockErrorKind};

/// At most this many of the keys that could not be released are named.
const NAMED: usize = 8;

/// Waits, at most `deadline`, until every lock whose release was deferred is released, and every
/// place in a queue is given up whose waiter has gone.
///
/// Call it last in `main`: a guard that was dropped, or a task that was aborted, releases its lock
/// on a background thread, which the end of the process would cut off. Without this call the end of `main`
/// waits 100 ms at most, and reports nothing of what was left; see
/// [`LockGuard`](crate::LockGuard#cancel-safety). New locks can be acquired afterwards as before.
///
/// # What this does not guarantee
/// Locks that are still held are not waited for. A task that was aborted holds its lock until its
/// runtime has dropped it, which may be later than this call: await its `JoinHandle` before. A process
/// that was forked waits for its own locks only, and never for its parent's.
///
/// # Errors
/// [`is_unavailable`](LockError::is_unavailable) when the deadline came first. The message says how
/// many locks remain and names the first of them; each ends with its lease.
///
/// # Cancel safety
/// The releases continue when the future is dropped.
///
/// # Examples
/// ```
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// use std::time::Duration;
///
/// // … serve until asked to stop …
/// lockable_runtime::shutdown(Duration::from_secs(5)).await?;
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
pub async fn shutdown(deadline: Duration) -> Result<(), LockError> {
    let releasers: Vec<_> = Releaser::all().iter().filter_map(Weak::upgrade).collect();
    let all_drained = async {
        for releaser in &releasers {
            releaser.backlog.drained().await;
        }
    };
    let background = background().map_err(|error| unreleased(&error.to_string()))?;
    let drained = within(|| timer_on(&background, deadline), all_drained).await;
    drained.ok_or_else(|| {
        let keys: Vec<String> = releasers.iter().flat_map(|releaser| releaser.keys()).collect();
        unreleased(&format!("{} not released within {deadline:?}", counted(&keys)))
    })
}

impl Releaser {
    /// The locks whose release still waits, as messages show them.
    fn keys(&self) -> Vec<String> {
        let shown = |deferred: &Deferred| {
            self.link.reporting.show(&deferred.duty.attempt.key).text().into_owned()
        };
        self.worklist.look(|agenda| agenda.items().map(shown).collect())
    }
}

/// "3 locks were", and which.
fn counted(keys: &[String]) -> String {
    let named = keys.iter().take(NAMED).map(|key| format!("`{}`", key.escape_debug()));
    let named = named.collect::<Vec<_>>().join(", ");
    let (verb, more) = match keys.len() {
        0 => return "a place in a queue was".to_owned(),
        1 => ("lock was", ""),
        count if count > NAMED => ("locks were", " and others"),
        _ => ("locks were", ""),
    };
    format!("{} {verb} ({named}{more})", keys.len())
}

fn unreleased(what: &str) -> LockError {
    LockError::new(LockErrorKind::Unavailable, format!("{what}; each ends with its lease"))
}
