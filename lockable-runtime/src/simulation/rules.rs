//! The rules that a seed has to keep, and what they remember.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::call::Call;
use super::history::MARKS;
use super::keys::permits_key;
use super::mix::{Kind, Mix};
use super::tickets::is_ticket;
use crate::core::lease::Lease;
use crate::core::locker::lead::Leadership;
use crate::core::process::clock::{Moment, tokio_time};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) number: u64,
    pub(super) key: &'static str,
    pub(super) fence: u64,
    pub(super) owner: String,
}

#[derive(Default)]
pub(super) struct Polled {
    pub(super) is_first: bool,
    /// The hold before it had the same owner token.
    pub(super) is_passed: bool,
    pub(super) broken: Vec<String>,
}

pub(super) struct Rules {
    /// How long a body may run after its lock was taken away, if its process is notified.
    longest_unheard: Option<Duration>,
    /// Whether messages and answers are late at most.
    is_mild: bool,
    longest_idle: Duration,
    keys: BTreeMap<&'static str, Key>,
    /// By key; the permits of a key share their grants.
    grants: BTreeMap<&'static str, Vec<Grant>>,
    /// By owner token.
    users: BTreeMap<String, Vec<(u64, Lease)>>,
    /// The owner tokens whose locks a server has lost: exclusion holds for the others.
    lost: BTreeSet<String>,
    /// Until when those may be polled that are notified.
    stop_by: BTreeMap<String, Moment>,
    /// The holds that operators have stopped.
    stopped: BTreeSet<u64>,
    stopped_owners: BTreeSet<String>,
    /// By owner: the number of changes of the primary before a server confirmed its lock last.
    confirmed: BTreeMap<String, u64>,
    lines: BTreeMap<Line, Vec<Arrived>>,
    /// By process and worker: the calls that wait without a limit.
    patient: BTreeSet<(usize, usize)>,
    /// The owner tokens that a release queued whose caller was dropped.
    given_up: BTreeSet<String>,
    calls: BTreeMap<Line, usize>,
    /// By campaign.
    leaders: BTreeMap<u64, Leader>,
}

pub(super) struct Leader {
    pub(super) hold: Hold,
    pub(super) probe: Leadership,
}

/// A process and a lock; its workers are in the order of their arrival.
type Line = (usize, String);

struct Arrived {
    worker: usize,
    /// Only a call that waits may overtake none.
    waits: Option<Moment>,
}

#[derive(Default)]
struct Key {
    current: Option<Hold>,
    /// Numbers of holds.
    begun: BTreeSet<u64>,
    /// Fencing tokens.
    used: BTreeSet<u64>,
    /// The owner of a lock that no call uses, and since when.
    idle: Option<(String, Moment)>,
}

/// Consecutive fencing tokens for one owner.
struct Grant {
    first: u64,
    last: u64,
    owner: String,
    /// By a primary that was left.
    is_left: bool,
    /// To a ticket, or by one: the fencing token stays the same.
    is_passed: bool,
}

impl Rules {
    pub(super) fn new(mix: &Mix) -> Self {
        Self {
            longest_unheard: (mix.kind == Kind::Deleting).then(|| mix.longest_unheard()),
            is_mild: mix.is_mild(),
            longest_idle: mix.longest_idle(),
            keys: BTreeMap::new(),
            grants: BTreeMap::new(),
            users: BTreeMap::new(),
            lost: BTreeSet::new(),
            stop_by: BTreeMap::new(),
            stopped: BTreeSet::new(),
            stopped_owners: BTreeSet::new(),
            confirmed: BTreeMap::new(),
            lines: BTreeMap::new(),
            patient: BTreeSet::new(),
            given_up: BTreeSet::new(),
            calls: BTreeMap::new(),
            leaders: BTreeMap::new(),
        }
    }

    /// A server granted a lock, with fencing tokens from the first to the last: they rise from grant to grant. A grant
    /// of a primary that was left is lost.
    pub(super) fn granted(
        &mut self,
        key: &'static str,
        owner: &str,
        [first, last]: [u64; 2],
        is_left: bool,
    ) -> Option<String> {
        self.stop_by.remove(owner);
        let grants = self.grants.entry(permits_key(key)).or_default();
        let rising = grants.iter().rev().find(|grant| !grant.is_left);
        let latest = rising.map_or(0, |grant| grant.last);
        grants.push(Grant { first, last, owner: owner.to_owned(), is_left, is_passed: false });
        (first <= latest && !is_left)
            .then(|| format!("{key}: the token {first} was granted after {latest}"))
    }

    /// The lock passed from one owner token to another.
    pub(super) fn transferred(&mut self, key: &'static str, from: &str, to: &str) {
        let grants = self.grants.entry(permits_key(key)).or_default();
        let is_repeated = grants.iter().any(|grant| grant.owner == to);
        let mut at = if is_repeated { 0 } else { grants.len() };
        // A lock may be granted twice to the same owner. The tokens of the grants rise.
        while let Some(granted) = grants[..at].iter().rposition(|grant| grant.owner == from) {
            let owner = to.to_owned();
            grants.insert(granted + 1, Grant { owner, is_passed: true, ..grants[granted] });
            at = granted;
        }
        // Only a primary that has lost something has the lock for an owner who has lost it.
        if self.is_lost(from) {
            self.loses(to, false);
        }
    }

    /// The lock of this owner is gone, or may be granted to another one.
    pub(super) fn loses(&mut self, owner: &str, is_heard: bool) {
        self.lost.insert(owner.to_owned());
        if let Some(longest) = self.longest_unheard.filter(|_| is_heard) {
            self.stop_by.insert(owner.to_owned(), tokio_time().after(longest));
        }
    }

    pub(super) fn is_lost(&self, owner: &str) -> bool {
        self.lost.contains(owner)
    }

    /// A server said that this owner has its lock, after this number of changes of the primary.
    pub(super) fn confirms(&mut self, owner: &str, epoch: u64) {
        let confirmed = self.confirmed.entry(owner.to_owned()).or_default();
        *confirmed = epoch.max(*confirmed);
    }

    /// Since this number of changes of the primary.
    pub(super) fn is_confirmed(&self, owner: &str, epoch: u64) -> bool {
        self.confirmed.get(owner).is_some_and(|confirmed| *confirmed >= epoch)
    }

    /// A body is polled under its lock, which the store has for this owner.
    pub(super) fn polled(&mut self, hold: &Hold, in_store: Option<&str>) -> Polled {
        let is_exclusive = !self.is_lost(&hold.owner);
        let other_leader = self.other_leader(hold).filter(|_| is_exclusive);
        let key = self.keys.entry(hold.key).or_default();
        let mut polled = Polled { is_first: key.begun.insert(hold.number), ..Polled::default() };
        if polled.is_first {
            let former = key.current.replace(hold.clone());
            polled.is_passed = former.as_ref().is_some_and(|former| former.owner == hold.owner);
            let grants = self.grants.get(permits_key(hold.key)).map_or(&[][..], Vec::as_slice);
            polled.broken.extend(key.broken_tokens(hold, grants, is_exclusive));
            if self.stopped_owners.contains(&hold.owner) {
                polled.broken.push("begins under a lock that an operator has stopped".to_owned());
            }
        } else if let Some(current) = key.current.as_ref().filter(|current| *current != hold)
            && is_exclusive
            && !self.lost.contains(&current.owner)
        {
            polled.broken.push(format!("is polled after hold {} began", current.number));
        }
        if is_exclusive && in_store != Some(&hold.owner) {
            let who = if in_store.is_some() { "another owner" } else { "no owner" };
            polled.broken.push(format!("is polled while the store has the lock for {who}"));
        }
        if let Some(other) = other_leader {
            polled.broken.push(format!("is polled while hold {other} shows that it leads"));
        }
        if self.stopped.contains(&hold.number) {
            polled.broken.push("is polled after an operator has stopped it".to_owned());
        }
        if self.stop_by.get(&hold.owner).is_some_and(|end| *end < tokio_time()) {
            polled
                .broken
                .push("is polled long after its process last_reply of the loss".to_owned());
        }
        polled
    }

    pub(super) fn leads(&mut self, campaign: u64, leader: Leader) {
        self.leaders.insert(campaign, leader);
    }

    pub(super) fn leads_no_more(&mut self, campaign: u64) {
        self.leaders.remove(&campaign);
    }

    /// Another leader of this lock, whose guard shows that it leads, although it has not lost its lock.
    fn other_leader(&self, hold: &Hold) -> Option<u64> {
        let is_other = |leader: &&Leader| {
            let Leader { hold: other, probe } = leader;
            let is_other = other.key == hold.key && other.number != hold.number;
            is_other && !self.is_lost(&other.owner) && probe.is_leader()
        };
        self.leaders.values().find(is_other).map(|leader| leader.hold.number)
    }

    pub(super) fn uses(&mut self, hold: &Hold, lease: &Lease) {
        // However short it is.
        self.keys.entry(hold.key).or_default().idle = None;
        let users = self.users.entry(hold.owner.clone()).or_default();
        users.push((hold.number, lease.clone()));
    }

    pub(super) fn done(&mut self, hold: &Hold) {
        if let Some(users) = self.users.get_mut(&hold.owner) {
            users.retain(|(number, _)| *number != hold.number);
        }
    }

    /// Only leases that are held.
    pub(super) fn held_by(&self, owner: &str) -> Vec<(u64, Lease)> {
        let users = self.users.get(owner).into_iter().flatten();
        users.filter(|(_, lease)| lease.is_held()).cloned().collect()
    }

    /// An operator's message has ended these holds.
    pub(super) fn stopped(&mut self, owner: &str, holds: impl Iterator<Item = u64>) {
        for hold in holds {
            self.stopped.insert(hold);
            self.stopped_owners.insert(owner.to_owned());
        }
    }

    /// Where nothing fails, no lock is taken for long that no call uses.
    pub(super) fn idle_for_long(&mut self, key: &'static str, in_store: Option<&str>) -> bool {
        let now = tokio_time();
        // One that is marked stays taken for a minimum hold, or a ticket has it.
        let is_used = |owner: &str| {
            let is_marked = owner.starts_with(MARKS) || is_ticket(owner);
            is_marked || self.users.get(owner).is_some_and(|users| !users.is_empty())
        };
        let idle = &mut self.keys.entry(key).or_default().idle;
        let Some(owner) = in_store.filter(|owner| !is_used(owner)) else {
            *idle = None;
            return false;
        };
        let is_known = idle.as_ref().is_some_and(|(of, _)| of == owner);
        let since = if is_known { idle.as_ref().map_or(now, |(_, since)| *since) } else { now };
        let is_long = now.since(since) > self.longest_idle;
        // It is reported once.
        let since = if is_long { Moment::from_nanos(u64::MAX) } else { since };
        *idle = Some((owner.to_owned(), since));
        is_long
    }

    /// The caller of a release is gone, which queues this owner.
    pub(super) fn gives_up(&mut self, owner: &str) {
        self.given_up.insert(owner.to_owned());
    }

    /// Whether a queue entry may stay while its process lives.
    pub(super) fn may_be_left(&self, owner: &str) -> bool {
        !self.is_mild || self.given_up.contains(owner)
    }

    pub(super) fn begins(&mut self, process: usize, worker: usize, call: &Call) {
        for key in call.waits_for() {
            *self.calls.entry((process, key.to_owned())).or_default() += 1;
        }
        if call.is_patient() {
            self.patient.insert((process, worker));
        }
    }

    pub(super) fn asks(&mut self, process: usize, worker: usize, key: &str) {
        if self.patient.contains(&(process, worker)) {
            let line = self.lines.entry((process, key.to_owned())).or_default();
            line.push(Arrived { worker, waits: None });
        }
    }

    pub(super) fn joins(&mut self, process: usize, worker: usize, key: &str) {
        if self.patient.contains(&(process, worker)) {
            let line = self.lines.entry((process, key.to_owned())).or_default();
            match line.iter_mut().find(|call| call.worker == worker) {
                Some(call) => call.waits = Some(tokio_time()),
                None => line.push(Arrived { worker, waits: Some(tokio_time()) }),
            }
        }
    }

    /// The call has the lock; returns how many it overtook, if it may overtake none. Its turn may have come before
    /// another call joined, at the same moment.
    pub(super) fn served(&mut self, process: usize, worker: usize, key: &str) -> Option<usize> {
        let line = self.lines.get_mut(&(process, key.to_owned()))?;
        let place = line.iter().position(|call| call.worker == worker)?;
        let waits = |call: &&Arrived| call.waits.is_some_and(|since| since < tokio_time());
        let overtaken = line.iter().take(place).filter(waits).count();
        let call = line.remove(place);
        (self.is_mild && call.waits.is_some() && overtaken > 0).then_some(overtaken)
    }

    pub(super) fn ends(&mut self, process: usize, worker: usize, call: &Call) {
        self.patient.remove(&(process, worker));
        for key in call.waits_for() {
            let line = (process, key.to_owned());
            if let Some(waiting) = self.lines.get_mut(&line) {
                waiting.retain(|call| call.worker != worker);
            }
            *self.calls.entry(line).or_default() -= 1;
        }
    }

    /// How many queue entries the calls of the process can have.
    pub(super) fn places(&self, process: usize, key: &str) -> usize {
        self.calls.get(&(process, key.to_owned())).copied().unwrap_or_default()
    }
}

impl Key {
    /// What is wrong with the fencing token of a hold that begins. If a server has lost the lock, the answer may be
    /// late, and tokens rise from grant to grant only. Those of a primary that was left are not compared.
    fn broken_tokens(&mut self, hold: &Hold, grants: &[Grant], is_exclusive: bool) -> Vec<String> {
        let Hold { fence, ref owner, .. } = *hold;
        let is_its =
            |grant: &&Grant| (grant.first..=grant.last).contains(&fence) && grant.owner == *owner;
        let Some(grant) = grants.iter().rev().find(is_its) else {
            return vec![format!("has the token {fence}, which it was not granted")];
        };
        if grant.is_left {
            return Vec::new();
        }
        let mut broken = Vec::new();
        let highest = self.used.last().copied().unwrap_or_default();
        if is_exclusive && fence < highest {
            broken.push(format!("has the token {fence}, and {highest} was used before"));
        }
        if !self.used.insert(fence) && !grant.is_passed {
            broken.push(format!("has the token {fence} of another hold"));
        }
        broken
    }
}
