use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;

use super::pending_release::{Known, PendingRelease};
use super::{Deferred, Releaser};
use crate::core::background::background;
use crate::core::process::clock::{timer_on, within};
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::key::LockKey;

const NAMED: usize = 8;

/// Waits, at most `deadline`, until all deferred releases are done, and no entry of a former waiter is in a queue.
///
/// Call it last in `main`: a dropped guard or an aborted task releases its lock on a background thread, which ends with
/// the process. Without this call the end of `main` waits at most 100 ms, and does not report the locks that remain;
/// see [`LockGuard`](crate::LockGuard#cancel-safety). New locks can be acquired afterwards.
///
/// # What this does not guarantee
/// - It does not wait for locks that are still held.
/// - An aborted task holds its lock until its runtime has dropped it, which may be after this call: await its
///   `JoinHandle` first.
/// - A forked process waits for its own locks only, never for its parent's.
///
/// # Errors
/// [`is_unavailable`](LockError::is_unavailable) when the deadline came first. The message has the number of locks that
/// remain, and names the first of them; each ends with its lease. It lists separately the locks of calls without a
/// reply, which may be held.
///
/// # Cancel safety
/// When the future is dropped, the releases continue.
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
    let background = background().map_err(|error| unreleased(error.to_string()))?;
    let drained = within(|| timer_on(&background, deadline), all_drained).await;
    drained.ok_or_else(|| {
        let mut remains = Remains::default();
        for releaser in &releasers {
            remains.add(releaser);
        }
        unreleased(remains.after(deadline))
    })
}

#[derive(Default)]
struct Remains {
    held: BTreeSet<String>,
    /// Locks of calls without an answer, which may be held.
    uncertain: BTreeSet<String>,
}

impl Remains {
    fn add(&mut self, releaser: &Releaser) {
        let shown = |key: &LockKey| releaser.context.reporting.show(key).text().into_owned();
        releaser.worklist.look(|agenda| {
            for Deferred { release: PendingRelease { attempt, known, .. }, .. } in agenda.items() {
                self.insert(shown(&attempt.key), *known);
            }
        });
    }

    fn insert(&mut self, key: String, known: Known) {
        match known {
            Known::Granted | Known::Releasing => self.held.insert(key),
            Known::Unknown => self.uncertain.insert(key),
        };
    }

    fn after(mut self, deadline: Duration) -> String {
        self.uncertain.retain(|key| !self.held.contains(key));
        let held = match self.held.len() {
            0 => None,
            1 => Some("1 lock was".to_owned()),
            count => Some(format!("{count} locks were")),
        };
        let held = held
            .map(|held| format!("{held} not released within {deadline:?} ({})", named(&self.held)));
        let uncertain = match self.uncertain.len() {
            0 => None,
            1 => Some("1 lock of a call without a reply may still be held".to_owned()),
            count => Some(format!("{count} locks of calls without a reply may still be held")),
        };
        let uncertain = uncertain.map(|text| {
            let time = if held.is_none() { format!(" after {deadline:?}") } else { String::new() };
            format!("{text}{time} ({})", named(&self.uncertain))
        });
        let each = if self.held.len() + self.uncertain.len() == 1 { "it" } else { "each" };
        let parts: Vec<_> = held.into_iter().chain(uncertain).collect();
        match parts.as_slice() {
            [] => format!("an entry in a queue was not removed within {deadline:?}"),
            parts => format!("{}; {each} ends with its lease", parts.join(", and ")),
        }
    }
}

fn named(keys: &BTreeSet<String>) -> String {
    let named = keys.iter().take(NAMED).map(|key| format!("`{}`", key.escape_debug()));
    let more = if keys.len() > NAMED { " and others" } else { "" };
    named.collect::<Vec<_>>().join(", ") + more
}

fn unreleased(what: String) -> LockError {
    LockError::new(LockErrorKind::Unavailable, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(keys: &[(&str, Known)]) -> String {
        let mut remains = Remains::default();
        for (key, known) in keys {
            remains.insert((*key).to_owned(), *known);
        }
        remains.after(Duration::from_secs(5))
    }

    #[test]
    fn what_remains_is_named_once_behind_the_time() {
        let held = [("b", Known::Granted), ("a", Known::Releasing), ("b", Known::Releasing)];
        let text = "2 locks were not released within 5s (`a`, `b`); each ends with its lease";
        assert_eq!(after(&held), text);
        let one = "1 lock was not released within 5s (`a\\n`); it ends with its lease";
        assert_eq!(after(&[("a\n", Known::Granted)]), one);
        assert_eq!(after(&[]), "an entry in a queue was not removed within 5s");
    }

    #[test]
    fn a_call_that_failed_is_not_said_to_hold_its_lock() {
        let failed = ("c", Known::Unknown);
        let text = "1 lock of a call without a reply may still be held after 5s (`c`); it ends with its lease";
        assert_eq!(after(&[failed, failed]), text);
        let text = "1 lock was not released within 5s (`a`), and 1 lock of a call without a reply may still be held \
                    (`c`); each ends with its lease";
        assert_eq!(after(&[("a", Known::Granted), failed, ("a", Known::Unknown)]), text);
    }

    #[test]
    fn of_many_keys_the_first_are_named() {
        let keys: Vec<_> = (0..=NAMED).map(|n| n.to_string()).collect();
        let keys: Vec<_> = keys.iter().map(|key| (&**key, Known::Granted)).collect();
        let text = after(&keys);
        assert!(text.starts_with("9 locks were not released within 5s (`0`, "), "{text}");
        assert!(text.contains("`7` and others); each"), "{text}");
    }
}
