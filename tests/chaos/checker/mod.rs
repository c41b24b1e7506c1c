//! Whether a history keeps the rules. Nothing here looks at a clock or a server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::history::{Effect, Fault, History, Hold, Sample, Size, Wait};
use crate::keys::LEADER;

mod beliefs;
mod repetitions;
mod windows;

#[cfg(test)]
mod tests;

use windows::Windows;

/// The longest lease of a run, in milliseconds.
pub(crate) const LONGEST_LEASE: u64 = 1_000;

/// What a run shows.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) holds: usize,
    pub(crate) faults: BTreeMap<String, usize>,
    /// Two that believed in a lock at once, in windows in which that may be.
    pub(crate) excused: usize,
    pub(crate) violations: Vec<String>,
    pub(crate) losses: usize,
    /// Consecutive holds of a lock by one process.
    pub(crate) passes: usize,
    /// Consecutive holds of a lock by two processes.
    pub(crate) hand_offs: usize,
    /// Runs that were left done.
    pub(crate) runs: usize,
    pub(crate) redemptions: usize,
    /// Terms of leaders.
    pub(crate) terms: usize,
    /// The part of the run in which no two may believe in a lock at once, in percent.
    pub(crate) outside: u64,
}

/// Judges a history whose lines were merged.
pub(crate) fn judge(history: &History) -> Verdict {
    let windows = Windows::of(&history.faults);
    let mut verdict = Verdict {
        holds: history.holds.len(),
        losses: history.losses.len(),
        runs: history.done.len(),
        redemptions: history.redemptions.len(),
        terms: history.holds.iter().filter(|hold| hold.key.ends_with(LEADER)).count(),
        outside: windows.percent_outside(history.span),
        ..Verdict::default()
    };
    for fault in &history.faults {
        *verdict.faults.entry(fault.kind.clone()).or_default() += 1;
    }
    let redeemed = history.redemptions.iter().map(|redemption| redemption.token).collect();
    for holds in by_key(&history.holds, |hold| &hold.key).values() {
        verdict.take_turns(holds, &windows, &redeemed);
    }
    for effects in by_key(&history.effects, |effect| &effect.key).values() {
        verdict.take_effects(effects, &windows);
    }
    verdict.take_late_polls(&history.holds);
    verdict.violations.extend(beliefs::unfounded(history, &windows));
    verdict.violations.extend(repetitions::of_runs(history, &windows));
    verdict.violations.extend(repetitions::of_tickets(history, &windows));
    let ended = history.ended.iter();
    verdict.violations.extend(ended.map(|pid| format!("process {pid} ended by itself")));
    let waits = by_key(&history.waits, |wait| &wait.key);
    let parts = by_key(&history.parts, |part| &part.key);
    let holds = by_key(&history.holds, |hold| &hold.key);
    let work = Work::of(&history.holds);
    for (key, samples) in by_key(&history.samples, |sample| &sample.key) {
        let of = |map: &BTreeMap<_, Vec<_>>| map.get(key).cloned().unwrap_or_default();
        verdict.take_idle(&samples, &of(&waits), history, &work);
        let holds = holds.get(key).cloned().unwrap_or_default();
        verdict.take_orphans(&samples, &holds, &of(&parts), history, &work);
    }
    verdict.take_leftovers(history);
    verdict
}

fn by_key<'a, T>(
    items: &'a [T],
    key: impl Fn(&'a T) -> &'a String,
) -> BTreeMap<&'a str, Vec<&'a T>> {
    let mut map: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for item in items {
        map.entry(key(item)).or_default().push(item);
    }
    map
}

impl Verdict {
    /// Those that a run needs more of to say anything.
    pub(crate) fn shortfalls(&self, kinds: &[&str]) -> Vec<String> {
        let count = |kind: &&str| self.faults.get(*kind).copied().unwrap_or_default();
        let counts = kinds.iter().map(|kind| (*kind, count(kind)));
        let others = [
            ("losses", self.losses),
            ("passes", self.passes),
            ("hand-offs", self.hand_offs),
            ("runs", self.runs),
            ("redemptions", self.redemptions),
            ("terms", self.terms),
        ];
        let all = others.into_iter().chain(counts);
        let mut short: Vec<_> = all.filter(|(_, count)| *count < FEWEST).collect();
        short.sort_unstable();
        let mut texts: Vec<_> =
            short.iter().map(|(what, count)| format!("{count} {what}")).collect();
        if self.outside < 50 {
            texts.push(format!("{} % outside of windows", self.outside));
        }
        texts
    }

    fn violate(&mut self, text: impl fmt::Display) {
        self.violations.push(text.to_string());
    }

    /// Holds of one lock, in the order of their beginnings.
    fn take_turns(&mut self, holds: &[&Hold], windows: &Windows<'_>, redeemed: &BTreeSet<u64>) {
        let mut former: Option<&Hold> = None;
        let mut inside: Option<&Hold> = None;
        let mut tokens = BTreeSet::new();
        for hold in holds {
            if let Some(other) = inside.filter(|other| hold.begin <= other.end) {
                self.take_overlap(other, hold, windows);
            }
            if let Some(former) = former {
                self.passes += usize::from(former.pid == hold.pid);
                self.hand_offs += usize::from(former.pid != hold.pid);
                let is_excused = windows.has(former.begin) || windows.has(hold.begin);
                if hold.token < former.token && !is_excused {
                    self.violate(format_args!("the token went back: {former:?}, then {hold:?}"));
                }
            }
            // A redeemed ticket has the token of the hold before.
            if !tokens.insert(hold.token) && !redeemed.contains(&hold.token) {
                self.violate(format_args!("two holds have one token: {hold:?}"));
            }
            former = Some(hold);
            inside = inside.filter(|other| other.end > hold.end).or(former);
        }
    }

    fn take_overlap(&mut self, other: &Hold, hold: &Hold, windows: &Windows<'_>) {
        let end = hold.end.min(other.end);
        // Of one that came after the fault nothing was lost.
        let older = hold.token.min(other.token);
        if windows.cover(hold.begin, end) && windows.harm(older, hold.begin, end) {
            self.excused += 1;
        } else {
            self.violate(format_args!("two held one lock: {other:?} and {hold:?}"));
        }
    }

    /// The order is the resource's own.
    fn take_effects(&mut self, effects: &[&Effect], windows: &Windows<'_>) {
        let mut accepted: Vec<_> = effects.iter().filter(|effect| effect.place.is_some()).collect();
        accepted.sort_by_key(|effect| effect.place);
        for pair in accepted.windows(2) {
            if let [former, later] = pair
                && later.token < former.token
            {
                self.violate(format_args!("the resource went back: {former:?}, then {later:?}"));
            }
        }
        let is_wrong =
            |effect: &&&Effect| effect.place.is_none() && effect.is_held && !windows.has(effect.at);
        for effect in effects.iter().filter(is_wrong) {
            self.violate(format_args!("the resource refused the holder: {effect:?}"));
        }
    }

    fn take_late_polls(&mut self, holds: &[Hold]) {
        for hold in holds.iter().filter(|hold| hold.late > 0) {
            self.violate(format_args!("a poll began after the deadline: {hold:?}"));
        }
    }

    /// A lock that is free while a call waits for it.
    fn take_idle(&mut self, samples: &[&Sample], waits: &[&Wait], history: &History, work: &Work) {
        // Of most, none has to be looked at again and again.
        let is_long = |wait: &&Wait| wait.end == 0 || wait.end > wait.begin + millis(IDLE_MILLIS);
        let waits: Vec<_> = waits.iter().copied().filter(is_long).collect();
        // Since when the lock is free, but of this no more than is too long.
        let mut free: VecDeque<&Sample> = VecDeque::new();
        let mut last: Option<&Sample> = None;
        for sample in samples {
            let is_gap = last.is_some_and(|last| sample.at > last.at + MOST_BETWEEN);
            if sample.owner.is_some() || is_gap {
                free.clear();
            }
            if sample.owner.is_none() {
                free.push_back(sample);
            }
            last = Some(sample);
            let is_too_long = |start: &Sample| work.has_passed(start, sample, IDLE_MILLIS);
            while free.get(1).is_some_and(|next| is_too_long(next)) {
                free.pop_front();
            }
            let Some(start) = free.front().copied().filter(|start| is_too_long(start)) else {
                continue;
            };
            // Later than all that disturbs, for that long.
            let begin = start.at;
            let is_there = |wait: &&&Wait| wait.begin <= begin && history.end_of(wait) > sample.at;
            if let Some(wait) = waits.iter().find(is_there)
                && is_calm(&history.faults, begin, sample.at)
            {
                self.violate(format_args!(
                    "a free lock and a waiter: {start:?} to {sample:?}, {wait:?}"
                ));
                free.clear();
            }
        }
    }

    /// A lock that is taken, and nobody believes in it, nor waits for others while it has this one.
    fn take_orphans(
        &mut self,
        samples: &[&Sample],
        holds: &[&Hold],
        parts: &[&Wait],
        history: &History,
        work: &Work,
    ) {
        let mut since: Option<&Sample> = None;
        let mut last: Option<&Sample> = None;
        for sample in samples {
            let is_gap = last.is_some_and(|last| sample.at > last.at + MOST_BETWEEN);
            let is_same = since.is_some_and(|since| since.owner == sample.owner);
            let is_taken = sample.owner.is_some();
            since = since.filter(|_| is_same && !is_gap).or(is_taken.then_some(*sample));
            last = Some(sample);
            let Some(start) = since.filter(|_| is_taken) else { continue };
            let long = work.has_passed(start, sample, ORPHAN_MILLIS);
            let is_believed = || {
                let is_there = |begin, end| begin <= sample.at && end >= start.at;
                holds.iter().any(|hold| is_there(hold.begin, hold.end))
                    || parts.iter().any(|part| is_there(part.begin, history.end_of(part)))
            };
            let before = start.at.saturating_sub(millis(LONGEST_LEASE));
            if long && is_calm(&history.faults, before, sample.at) && !is_believed() {
                self.violate(format_args!("a lock without a holder: {start:?} to {sample:?}"));
                since = None;
            }
        }
    }

    fn take_leftovers(&mut self, history: &History) {
        // One that expired before its TTL was asked for has -2.
        for (name, _) in history.left.iter().filter(|(_, ttl)| *ttl == -1) {
            self.violate(format_args!("a key without an end was left: {name}"));
        }
        let (ends, begins): (Vec<_>, Vec<_>) = history.sizes.iter().partition(|size| size.is_end);
        for end in ends {
            let Some(begin) = begins.iter().find(|begin| begin.slot == end.slot) else { continue };
            if let Some(what) = grown(begin, end) {
                self.violate(format_args!("{what} grew: {begin:?}, then {end:?}"));
            }
        }
    }
}

/// When holders began, of any lock.
struct Work(Vec<u64>);

impl Work {
    fn of(holds: &[Hold]) -> Self {
        let mut begins: Vec<_> = holds.iter().map(|hold| hold.begin).collect();
        begins.sort_unstable();
        Self(begins)
    }

    /// Whether it was that long from one look to another, and many calls were served in each half of that: a call that
    /// waits asks by itself after a second, and what it asks is answered before that of others who come later. A machine
    /// that stalls, and processes that only begin, serve none.
    fn has_passed(&self, start: &Sample, end: &Sample, time: u64) -> bool {
        let is_before = |moment: u64| self.0.partition_point(|begin| *begin <= moment);
        let are_many = |from: u64, to: u64| is_before(to) - is_before(from) >= MANY;
        let middle = start.at.midpoint(end.at);
        end.at - start.at > millis(time) && are_many(start.at, middle) && are_many(middle, end.at)
    }
}

/// More than a tenth, and more than one for each of three masters, which the begin may not have needed yet.
fn grown(begin: &Size, end: &Size) -> Option<&'static str> {
    let is_grown = |begin: u64, end: u64, least: u64| end > begin + (begin / 10).max(least);
    if is_grown(begin.connections, end.connections, MASTERS) {
        return Some("the connections");
    }
    if is_grown(begin.tasks, end.tasks, MASTERS) {
        return Some("the tasks");
    }
    is_grown(begin.kibibytes, end.kibibytes, 4_096).then_some("the memory")
}

/// No fault touches this time.
fn is_calm(faults: &[Fault], begin: u64, end: u64) -> bool {
    !faults.iter().any(|fault| fault.begin <= end && fault.felt >= begin)
}

const fn millis(count: u64) -> u64 {
    count * 1_000_000
}

/// Of a cluster.
const MASTERS: u64 = 3;

/// Of each, for a run that says something.
const FEWEST: usize = 20;

/// What a few processes, which faults hold up, serve in a fraction of a second.
const MANY: usize = 10;

/// How long a lock may be free while a call waits for it.
const IDLE_MILLIS: u64 = 2_000;

/// How long a lock may be taken by no one who believes in it.
const ORPHAN_MILLIS: u64 = 2_500;

/// Samples further apart say nothing of the time between them.
const MOST_BETWEEN: u64 = millis(500);
