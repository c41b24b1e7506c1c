//! The rules that a seed has to keep, and what has to be remembered for them.

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

/// A body under its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) number: u64,
    pub(super) key: &'static str,
    pub(super) fence: u64,
    pub(super) owner: String,
}

/// What a poll of a body showed.
#[derive(Default)]
pub(super) struct Polled {
    /// The hold is a new one.
    pub(super) is_first: bool,
    /// The hold before it had the same owner token.
    pub(super) is_passed: bool,
    pub(super) broken: Vec<String>,
}

pub(super) struct Rules {
    /// How long a body may run on whose process hears that its lock was taken away.
    longest_unheard: Option<Duration>,
    /// Whether messages and answers are late at most, so that nothing is lost by that.
    is_mild: bool,
    longest_idle: Duration,
    keys: BTreeMap<&'static str, Key>,
    /// All grants: the permits of a key have them in common.
    grants: BTreeMap<&'static str, Vec<Grant>>,
    /// The holds of calls that use a lock, by its owner token.
    users: BTreeMap<String, Vec<(u64, Lease)>>,
    /// The owner tokens of which a server has lost a lock that it had granted: exclusion holds for the others.
    lost: BTreeSet<String>,
    /// How long those may be polled that hear of it.
    stop_by: BTreeMap<String, Moment>,
    /// The holds that operators have stopped, and their owner tokens, which may not be passed on.
    stopped: BTreeSet<u64>,
    stopped_owners: BTreeSet<String>,
    /// After how many changes of the primary a server has said last that an owner has its lock.
    confirmed: BTreeMap<String, u64>,
    lines: BTreeMap<Line, Vec<Arrived>>,
    /// The workers whose calls wait without a limit.
    patient: BTreeSet<(usize, usize)>,
    /// The owner tokens of places that a release queues whose caller was dropped.
    given_up: BTreeSet<String>,
    /// How many calls each process makes for a lock.
    calls: BTreeMap<Line, usize>,
    /// The last leaders, by the numbers of their campaigns.
    leaders: BTreeMap<u64, Leader>,
}

/// A process that leads, or has led last.
pub(super) struct Leader {
    pub(super) hold: Hold,
    /// What it shows of that.
    pub(super) probe: Leadership,
}

/// A process and a lock; the workers whose calls wait there are in the order of their arrival.
type Line = (usize, String);

/// A call that asks for a lock, or waits for it.
struct Arrived {
    worker: usize,
    /// Since when it waits: one that only asks may be overtaken, and may overtake.
    waits: Option<Moment>,
}

/// What is known of one lock.
#[derive(Default)]
struct Key {
    /// The hold that began last.
    current: Option<Hold>,
    /// The holds that began, by their numbers.
    begun: BTreeSet<u64>,
    /// The fencing tokens that were used.
    used: BTreeSet<u64>,
    /// The owner of a lock that no call uses, and since when.
    idle: Option<(String, Moment)>,
}

/// What the server granted: consecutive fencing tokens to one owner.
struct Grant {
    first: u64,
    last: u64,
    owner: String,
    /// By a server that was left for the other one.
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

    /// A server granted a lock, with these fencing tokens, the first and the last: they rise from grant to
    /// grant. What one grants that was left is lost.
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

    /// A server gave a lock from one owner token to another.
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

    /// The lock of this owner is not there any more, or may be granted to another one.
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

    /// Whether a server has said so after that many changes.
    pub(super) fn is_confirmed(&self, owner: &str, epoch: u64) -> bool {
        self.confirmed.get(owner).is_some_and(|confirmed| *confirmed >= epoch)
    }

    /// A body is polled, which believes in its lock; the store has that for this owner now.
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

    /// A campaign is won.
    pub(super) fn leads(&mut self, campaign: u64, leader: Leader) {
        self.leaders.insert(campaign, leader);
    }

    /// The campaigns have ended.
    pub(super) fn leads_no_more(&mut self, campaign: u64) {
        self.leaders.remove(&campaign);
    }

    /// The hold of another leader of this lock, who shows that it leads still, although it has not lost its lock.
    fn other_leader(&self, hold: &Hold) -> Option<u64> {
        let is_other = |leader: &&Leader| {
            let Leader { hold: other, probe } = leader;
            let is_other = other.key == hold.key && other.number != hold.number;
            is_other && !self.is_lost(&other.owner) && probe.is_leader()
        };
        self.leaders.values().find(is_other).map(|leader| leader.hold.number)
    }

    /// A call has the lock, until it is [done](Rules::done) with it.
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

    /// The leases of this owner that are held.
    pub(super) fn held_by(&self, owner: &str) -> Vec<(u64, Lease)> {
        let users = self.users.get(owner).into_iter().flatten();
        users.filter(|(_, lease)| lease.is_held()).cloned().collect()
    }

    /// A message of an operator has arrived, which ended these holds.
    pub(super) fn stopped(&mut self, owner: &str, holds: impl Iterator<Item = u64>) {
        for hold in holds {
            self.stopped.insert(hold);
            self.stopped_owners.insert(owner.to_owned());
        }
    }

    /// Where nothing fails, no lock is taken for long that no call uses. The store has it for this owner.
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

    /// No call waits any more for the answer to a release, which queues a place for this owner.
    pub(super) fn gives_up(&mut self, owner: &str) {
        self.given_up.insert(owner.to_owned());
    }

    /// Whether a place may stay in a queue while its process lives.
    pub(super) fn may_be_left(&self, owner: &str) -> bool {
        !self.is_mild || self.given_up.contains(owner)
    }

    /// A call of this worker begins, which may wait without a limit.
    pub(super) fn begins(&mut self, process: usize, worker: usize, call: &Call) {
        for key in call.waits_for() {
            *self.calls.entry((process, key.to_owned())).or_default() += 1;
        }
        if call.is_patient() {
            self.patient.insert((process, worker));
        }
    }

    /// The call asks, and has its place in the line of its process from now on.
    pub(super) fn asks(&mut self, process: usize, worker: usize, key: &str) {
        if self.patient.contains(&(process, worker)) {
            let line = self.lines.entry((process, key.to_owned())).or_default();
            line.push(Arrived { worker, waits: None });
        }
    }

    /// The call joins the line of its process.
    pub(super) fn joins(&mut self, process: usize, worker: usize, key: &str) {
        if self.patient.contains(&(process, worker)) {
            let line = self.lines.entry((process, key.to_owned())).or_default();
            match line.iter_mut().find(|call| call.worker == worker) {
                Some(call) => call.waits = Some(tokio_time()),
                None => line.push(Arrived { worker, waits: Some(tokio_time()) }),
            }
        }
    }

    /// The call has the lock; says how many it overtook, if it may overtake none. Its turn may have come at this very
    /// moment, before another call joined.
    pub(super) fn served(&mut self, process: usize, worker: usize, key: &str) -> Option<usize> {
        let line = self.lines.get_mut(&(process, key.to_owned()))?;
        let place = line.iter().position(|call| call.worker == worker)?;
        let waits = |call: &&Arrived| call.waits.is_some_and(|since| since < tokio_time());
        let overtaken = line.iter().take(place).filter(waits).count();
        let call = line.remove(place);
        (self.is_mild && call.waits.is_some() && overtaken > 0).then_some(overtaken)
    }

    /// The call is over.
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

    /// How many places in its lines the calls of the process can have.
    pub(super) fn places(&self, process: usize, key: &str) -> usize {
        self.calls.get(&(process, key.to_owned())).copied().unwrap_or_default()
    }
}

impl Key {
    /// What is wrong with the fencing token of a hold that begins. Where a server has lost the lock, the answer may be
    /// late while a later grant is used already; then tokens rise from grant to grant only. Those of a primary that was
    /// left are beside those of the next one.
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
