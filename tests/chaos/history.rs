//! What happened in a run: one line each, all times in nanoseconds since the machine booted.

use std::collections::BTreeMap;

/// All lines of a run, each kind in the order in which it was read.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) holds: Vec<Hold>,
    pub(crate) beliefs: Vec<Belief>,
    pub(crate) waits: Vec<Wait>,
    /// Calls for several locks: one may hold a part of them, without a body.
    pub(crate) parts: Vec<Wait>,
    /// When a process heard that it had lost a lock.
    pub(crate) losses: Vec<u64>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) done: Vec<Done>,
    pub(crate) redemptions: Vec<Redemption>,
    pub(crate) faults: Vec<Fault>,
    /// When each process that is there no more ended.
    pub(crate) gone: BTreeMap<u32, u64>,
    /// Processes that ended by themselves, and should not.
    pub(crate) ended: Vec<u32>,
    pub(crate) samples: Vec<Sample>,
    /// The keys that were left at the end, with their TTL in milliseconds.
    pub(crate) left: Vec<(String, i64)>,
    pub(crate) sizes: Vec<Size>,
    pub(crate) span: (u64, u64),
}

/// `hold PID KEY TOKEN DEADLINE BEGIN END LATE OWNER`: a process believed in a lock, from one look at its lease to
/// another. The owner is a hash of its token, or `-` where the process does not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) pid: u32,
    pub(crate) key: String,
    pub(crate) token: u64,
    /// Zero where the process does not know it.
    pub(crate) deadline: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// How many polls of the body began after the deadline.
    pub(crate) late: u64,
}

/// The deadline of a holder, as it was at the last look of a line of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belief {
    pub(crate) pid: u32,
    pub(crate) key: String,
    pub(crate) token: u64,
    pub(crate) owner: String,
    pub(crate) at: u64,
    pub(crate) deadline: u64,
}

/// `wait PID NUMBER KEY BEGIN END`: a call waited for a lock; the end is zero while it does. `part …`: a call for several
/// locks was under way, of which this is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) pid: u32,
    pub(crate) number: u64,
    pub(crate) key: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// `effect KEY TOKEN PLACE AT held|over`: a write to the fenced resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) key: String,
    pub(crate) token: u64,
    /// Where the resource has put it among those that it accepted; `None` when it refused.
    pub(crate) place: Option<u64>,
    pub(crate) at: u64,
    /// Whether the process believed in the lock after the answer had come.
    pub(crate) is_held: bool,
}

/// `done KEY TOKEN AT UNTIL`: a run ended well, and no other may begin from its answer until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) key: String,
    pub(crate) token: u64,
    pub(crate) at: u64,
    pub(crate) until: u64,
}

/// `redeemed KEY TOKEN AT`: a process took over the lock of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redemption {
    pub(crate) key: String,
    pub(crate) token: u64,
    pub(crate) at: u64,
}

/// `fault KIND BEGIN END FELT LOST`: something was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Until when calls may be slow, or waiters not know of it.
    pub(crate) felt: u64,
    /// Where two may hold a lock at once, as the documentation says: a fencing token above those of all locks that it
    /// has harmed. `-` is none.
    pub(crate) lost: Option<u64>,
}

/// `sample KEY AT AFTER OWNER TTL`: what the server had at a lock's key; `-` is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) key: String,
    /// Before the server was asked.
    pub(crate) at: u64,
    /// After it had answered.
    pub(crate) after: u64,
    /// A hash of the owner token.
    pub(crate) owner: Option<String>,
    /// In milliseconds.
    pub(crate) ttl: u64,
}

/// `size SLOT begin|end CONNECTIONS TASKS KIBIBYTES`: what a process at rest has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) slot: String,
    pub(crate) is_end: bool,
    pub(crate) connections: u64,
    pub(crate) tasks: u64,
    pub(crate) kibibytes: u64,
}

impl History {
    /// Reads lines; one that a killed process has not finished says nothing.
    pub(crate) fn read(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            self.note(&words);
        }
    }

    fn note(&mut self, words: &[&str]) -> Option<()> {
        match words {
            ["hold", rest @ ..] => {
                let (hold, owner) = hold(rest)?;
                self.beliefs.extend(belief(&hold, owner));
                self.holds.push(hold);
            }
            ["wait", rest @ ..] => self.waits.push(wait(rest)?),
            ["part", rest @ ..] => self.parts.push(wait(rest)?),
            ["lost", at] => self.losses.push(at.parse().ok()?),
            ["effect", rest @ ..] => self.effects.push(effect(rest)?),
            ["done", rest @ ..] => self.done.push(done(rest)?),
            ["redeemed", rest @ ..] => self.redemptions.push(redemption(rest)?),
            ["fault", rest @ ..] => self.faults.push(fault(rest)?),
            ["gone", pid, at] => drop(self.gone.insert(pid.parse().ok()?, at.parse().ok()?)),
            ["sample", rest @ ..] => self.samples.push(sample(rest)?),
            ["left", ttl, name] => self.left.push(((*name).to_owned(), ttl.parse().ok()?)),
            ["size", rest @ ..] => self.sizes.push(size(rest)?),
            ["ended", pid] => self.ended.push(pid.parse().ok()?),
            ["span", begin, end] => self.span = (begin.parse().ok()?, end.parse().ok()?),
            _ => return None,
        }
        Some(())
    }

    /// When a call ended, or its process.
    pub(crate) fn end_of(&self, wait: &Wait) -> u64 {
        let gone = self.gone.get(&wait.pid).copied().unwrap_or(u64::MAX);
        if wait.end == 0 { gone } else { gone.min(wait.end) }
    }

    /// The lines of one hold or wait as one: the first and the last that was seen.
    pub(crate) fn merged(mut self) -> Self {
        let mut holds: BTreeMap<(u32, String, u64), Hold> = BTreeMap::new();
        for hold in self.holds.drain(..) {
            let known = holds.entry((hold.pid, hold.key.clone(), hold.token));
            let known = known.or_insert_with(|| hold.clone());
            known.begin = known.begin.min(hold.begin);
            known.end = known.end.max(hold.end);
            known.deadline = known.deadline.max(hold.deadline);
            known.late = known.late.max(hold.late);
        }
        self.holds = holds.into_values().collect();
        self.holds.sort_by_key(|hold| hold.begin);
        for waits in [&mut self.waits, &mut self.parts] {
            let mut merged: BTreeMap<(u32, u64), Wait> = BTreeMap::new();
            for wait in waits.drain(..) {
                let known = merged.entry((wait.pid, wait.number)).or_insert_with(|| wait.clone());
                known.end = known.end.max(wait.end);
            }
            *waits = merged.into_values().collect();
        }
        self.beliefs.sort_by_key(|belief| belief.at);
        self.redemptions.sort_by_key(|redemption| redemption.at);
        self.samples.sort_by_key(|sample| sample.at);
        self.faults.sort_by_key(|fault| fault.begin);
        self
    }
}

fn hold<'a>(words: &[&'a str]) -> Option<(Hold, &'a str)> {
    let [pid, key, token, deadline, begin, end, late, owner] = words else { return None };
    let hold = Hold {
        pid: pid.parse().ok()?,
        key: (*key).to_owned(),
        token: token.parse().ok()?,
        deadline: deadline.parse().ok()?,
        begin: begin.parse().ok()?,
        end: end.parse().ok()?,
        late: late.parse().ok()?,
    };
    Some((hold, owner))
}

fn belief(hold: &Hold, owner: &str) -> Option<Belief> {
    let Hold { pid, key, token, end: at, deadline, .. } = hold.clone();
    let is_known = owner != "-" && deadline > 0;
    is_known.then(|| Belief { pid, key, token, owner: owner.to_owned(), at, deadline })
}

fn wait(words: &[&str]) -> Option<Wait> {
    let [pid, number, key, begin, end] = words else { return None };
    Some(Wait {
        pid: pid.parse().ok()?,
        number: number.parse().ok()?,
        key: (*key).to_owned(),
        begin: begin.parse().ok()?,
        end: end.parse().ok()?,
    })
}

fn effect(words: &[&str]) -> Option<Effect> {
    let [key, token, place, at, belief] = words else { return None };
    Some(Effect {
        key: (*key).to_owned(),
        token: token.parse().ok()?,
        place: Some(place.parse().ok()?).filter(|place| *place > 0),
        at: at.parse().ok()?,
        is_held: *belief == "held",
    })
}

fn done(words: &[&str]) -> Option<Done> {
    let [key, token, at, until] = words else { return None };
    Some(Done {
        key: (*key).to_owned(),
        token: token.parse().ok()?,
        at: at.parse().ok()?,
        until: until.parse().ok()?,
    })
}

fn redemption(words: &[&str]) -> Option<Redemption> {
    let [key, token, at] = words else { return None };
    Some(Redemption { key: (*key).to_owned(), token: token.parse().ok()?, at: at.parse().ok()? })
}

fn fault(words: &[&str]) -> Option<Fault> {
    let [kind, begin, end, felt, lost] = words else { return None };
    Some(Fault {
        kind: (*kind).to_owned(),
        begin: begin.parse().ok()?,
        end: end.parse().ok()?,
        felt: felt.parse().ok()?,
        lost: lost.parse().ok(),
    })
}

fn sample(words: &[&str]) -> Option<Sample> {
    let [key, at, after, owner, ttl] = words else { return None };
    Some(Sample {
        key: (*key).to_owned(),
        at: at.parse().ok()?,
        after: after.parse().ok()?,
        owner: Some((*owner).to_owned()).filter(|owner| owner != "-"),
        ttl: ttl.parse().unwrap_or_default(),
    })
}

fn size(words: &[&str]) -> Option<Size> {
    let [slot, when, connections, tasks, kibibytes] = words else { return None };
    Some(Size {
        slot: (*slot).to_owned(),
        is_end: *when == "end",
        connections: connections.parse().ok()?,
        tasks: tasks.parse().ok()?,
        kibibytes: kibibytes.parse().ok()?,
    })
}
