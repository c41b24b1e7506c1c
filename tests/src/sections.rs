//! Who is in a critical section, which fencing tokens came, and what is left.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockable_runtime::{Lease, Leases, LockGuard};

use crate::wait::HANG;
use crate::{Cluster, Server, wait};

/// The critical sections of a test: two at a time for one key are an overlap, and each has a larger fencing
/// token than the one before.
#[derive(Debug, Default)]
pub struct Sections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    keys: HashMap<String, Key>,
    /// Of all keys.
    ends: Ends,
    is_failing_over: bool,
    overlaps: Vec<Overlap>,
    old_tokens: Vec<String>,
}

#[derive(Debug, Default)]
struct Key {
    /// Who has entered and not left, by fencing token.
    inside: HashMap<u64, Holder>,
    token: u64,
    ends: Ends,
}

/// Sections that have ended.
#[derive(Debug, Default)]
struct Ends {
    count: u64,
    latest: Option<Instant>,
    longest_pause: Duration,
}

impl Ends {
    fn add(&mut self) {
        self.longest_pause = self.longest_pause();
        self.latest = Some(now());
        self.count += 1;
    }

    /// The longest time without an end, until now.
    fn longest_pause(&self) -> Duration {
        let pause = self.latest.map_or(Duration::ZERO, |latest| latest.elapsed());
        self.longest_pause.max(pause)
    }

    fn take_longest_pause(&mut self) -> Duration {
        let pause = self.longest_pause();
        self.longest_pause = Duration::ZERO;
        pause
    }
}

#[derive(Debug)]
struct Holder {
    lease: Lease,
    /// It has entered since [`Sections::fails_over`].
    is_late: bool,
}

/// A holder that was still inside, and believed in its lease, when another one entered.
#[derive(Debug)]
struct Overlap {
    key: String,
    token: u64,
    is_late: bool,
    since: Instant,
    /// Until it has left.
    lasted: Option<Duration>,
}

impl Sections {
    /// A holder begins. Any other one that is inside must have noticed by now that its lease is over.
    pub fn enter(&self, guard: &LockGuard) {
        self.enter_with(guard.lease());
    }

    /// A holder of several locks begins, as of each of them.
    pub fn enter_all(&self, leases: &Leases) {
        each(leases).for_each(|lease| self.enter_with(lease));
    }

    fn enter_with(&self, lease: &Lease) {
        let (name, token) = (lease.key().as_str(), u64::from(lease.fencing_token()));
        let mut state = self.state();
        let State { keys, overlaps, old_tokens, is_failing_over, .. } = &mut *state;
        let key = keys.entry(name.to_owned()).or_default();
        let others = key.inside.iter().filter(|(_, other)| other.lease.is_held());
        overlaps.extend(others.map(|(token, other)| Overlap {
            key: name.to_owned(),
            token: *token,
            is_late: other.is_late,
            since: now(),
            lasted: None,
        }));
        if token <= key.token {
            old_tokens.push(format!("{name}: {token} after {}", key.token));
        }
        key.token = token.max(key.token);
        key.inside.insert(token, Holder { lease: lease.clone(), is_late: *is_failing_over });
    }

    /// A holder has ended, by itself or because its lease was lost.
    pub fn leave(&self, guard: &LockGuard) {
        self.leave_with(guard.lease());
    }

    /// A holder of several locks has ended.
    pub fn leave_all(&self, leases: &Leases) {
        each(leases).for_each(|lease| self.leave_with(lease));
    }

    fn leave_with(&self, lease: &Lease) {
        let (name, token) = (lease.key().as_str(), u64::from(lease.fencing_token()));
        let mut state = self.state();
        let key = state.keys.get_mut(name).expect("it has entered");
        key.inside.remove(&token);
        key.ends.add();
        state.ends.add();
        let own = |overlap: &&mut Overlap| overlap.token == token && overlap.key == name;
        for overlap in state.overlaps.iter_mut().filter(own) {
            overlap.lasted = Some(overlap.since.elapsed());
        }
    }

    /// From now on the primary may grant what the next one does not hear of.
    pub fn fails_over(&self) {
        self.state().is_failing_over = true;
    }

    /// How many have ended.
    pub fn finished(&self) -> u64 {
        self.state().ends.count
    }

    /// How many have ended of each key.
    pub fn finished_of(&self, key: &str) -> u64 {
        self.state().keys.get(key).map_or(0, |key| key.ends.count)
    }

    /// The longest time without an end of a section, since the first one or since the last call.
    pub fn take_longest_pause(&self) -> Duration {
        self.state().ends.take_longest_pause()
    }

    /// The longest time in which none of the sections of one lock ended, since its first one or since the
    /// last call; of the locks of which the condition holds.
    pub fn take_longest_pause_of(&self, condition: impl Fn(&str) -> bool) -> Duration {
        let mut state = self.state();
        let keys = state.keys.iter_mut().filter(|(name, _)| condition(name));
        keys.map(|(_, key)| key.ends.take_longest_pause()).max().unwrap_or_default()
    }

    /// No two holders at a time, and tokens that rise.
    pub fn assert_sound(&self) {
        let state = self.state();
        assert!(state.overlaps.is_empty(), "{:?}", state.overlaps);
        assert_eq!(state.old_tokens, [""; 0]);
    }

    /// The same, but for grants of the failover that the new primary never heard of: their holders may be
    /// inside until they have noticed. Returns for how long that was.
    pub fn assert_sound_but_for_lost_grants(&self) -> Duration {
        let state = self.state();
        println!("{} overlaps {:?}", state.overlaps.len(), state.overlaps.first());
        assert!(state.overlaps.iter().all(|overlap| overlap.is_late), "{:?}", state.overlaps);
        assert_eq!(state.old_tokens, [""; 0]);
        let lasted = state.overlaps.iter().map(|overlap| overlap.lasted.expect("it has left"));
        lasted.max().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each lease once: equal keys have one.
fn each(leases: &Leases) -> impl Iterator<Item = &Lease> {
    let is_first = |(place, lease): &(usize, &Lease)| {
        leases.iter().take(*place).all(|other| other.key() != lease.key())
    };
    leases.iter().enumerate().filter(is_first).map(|(_, lease)| lease)
}

/// Waits until the lease was renewed, on another connection than the caller's.
pub async fn renewed(guard: &LockGuard) {
    let mut before = guard.lease().remaining();
    wait::until_async(HANG, async || {
        let now = guard.lease().remaining();
        now > std::mem::replace(&mut before, now)
    })
    .await;
}

/// Nothing is left but fence counters that have an end.
pub async fn is_clean(server: &Server) {
    let admin = server.admin();
    let left = || {
        let is_left = |key: &&String| !key.starts_with("lockable:fence:") || admin.pttl(key) == -1;
        admin.keys("*").iter().filter(is_left).cloned().collect::<Vec<_>>()
    };
    let mut last = Vec::new();
    let is_clean = async || {
        let left = left();
        if left != last {
            let shown = |key: &String| {
                format!("{key} {} {:?}", admin.pttl(key), admin.try_command(&["GET", key]))
            };
            eprintln!("left: {:?}", left.iter().map(shown).collect::<Vec<_>>());
            last = left;
        }
        last.is_empty()
    };
    wait::until_async(HANG, is_clean).await;
}

/// The same of all masters of a cluster.
pub async fn is_clean_everywhere(cluster: &Cluster) {
    for master in cluster.masters() {
        is_clean(master).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "pauses and overlaps are real time")]
fn now() -> Instant {
    Instant::now()
}
