//! What the tests share: who is in a critical section, which fencing tokens came, and what is left.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockable_runtime::{Lease, LockGuard};
use lockable_tests::{Pace, Server, wait};

use crate::support::LIMIT;

/// How long a failover may take before a test hangs.
pub(super) const SWITCH: Duration = Duration::from_secs(30);

/// What must come soon after a switch, as a [`Pace`] measures it.
pub(super) const SOON: Duration = Duration::from_secs(1);

/// The critical sections of a test: two at a time for one key are an overlap, and each has a larger fencing
/// token than the one before.
#[derive(Debug, Default)]
pub(super) struct Sections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    keys: HashMap<String, Key>,
    finished: u64,
    latest: Option<Pace>,
    longest_pause: Duration,
    overlaps: Vec<String>,
    old_tokens: Vec<String>,
}

#[derive(Debug, Default)]
struct Key {
    /// Who has entered and not left.
    inside: HashMap<u64, Lease>,
    token: u64,
    finished: u64,
}

impl Sections {
    /// A holder begins. Whoever else is inside must have noticed by now that its lease is over.
    pub(super) fn enter(&self, guard: &LockGuard) {
        let (name, token) = (guard.key().as_str(), u64::from(guard.fencing_token()));
        let mut state = self.state();
        let key = state.keys.entry(name.to_owned()).or_default();
        let others = key.inside.iter().filter(|(_, lease)| lease.is_held());
        let others: Vec<_> = others.map(|(other, _)| *other).collect();
        key.inside.insert(token, guard.lease());
        let former = key.token;
        key.token = token.max(former);
        if !others.is_empty() {
            state.overlaps.push(format!(
                "{:?} {name}: {token} beside {others:?}",
                crate::support::boot_time()
            ));
        }
        if token <= former {
            state.old_tokens.push(format!("{name}: {token} after {former}"));
        }
    }

    /// A holder has ended, by itself or because its lease was lost.
    pub(super) fn leave(&self, guard: &LockGuard) {
        let mut state = self.state();
        let key = state.keys.get_mut(guard.key().as_str()).expect("it has entered");
        key.inside.remove(&guard.fencing_token().into());
        key.finished += 1;
        state.finished += 1;
        let pause = state.latest.map_or(Duration::ZERO, |latest| latest.elapsed());
        state.longest_pause = state.longest_pause.max(pause);
        state.latest = Some(Pace::start());
    }

    /// How many have ended.
    pub(super) fn finished(&self) -> u64 {
        self.state().finished
    }

    /// How many have ended of each key.
    pub(super) fn finished_of(&self, key: &str) -> u64 {
        self.state().keys.get(key).map_or(0, |key| key.finished)
    }

    /// The longest time without an end of a section, since the first one or since the last call.
    pub(super) fn take_longest_pause(&self) -> Duration {
        let mut state = self.state();
        let pause = state.latest.map_or(Duration::ZERO, |latest| latest.elapsed());
        std::mem::take(&mut state.longest_pause).max(pause)
    }

    /// No two holders at a time, and tokens that rise.
    pub(super) fn assert_sound(&self) {
        let state = self.state();
        assert_eq!((&state.overlaps, &state.old_tokens), (&vec![], &vec![]));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the lease was renewed, on another connection than the caller's.
pub(super) async fn renewed(guard: &LockGuard) {
    let mut before = guard.remaining();
    wait::until_async(LIMIT, async || {
        let now = guard.remaining();
        now > std::mem::replace(&mut before, now)
    })
    .await;
}

/// Nothing is left but fence counters that have an end.
pub(super) async fn is_clean(server: &Server) {
    let admin = server.admin();
    let left = || {
        let is_left = |key: &&String| !key.starts_with("lockable:fence:") || admin.pttl(key) == -1;
        admin.keys("*").iter().filter(is_left).cloned().collect::<Vec<_>>()
    };
    wait::until_async(SWITCH, async || left().is_empty()).await;
}
