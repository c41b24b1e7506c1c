//! What happened in a run: one line each, all times in nanoseconds since the machine booted.

use std::collections::BTreeMap;

/// All lines of a run, each kind in the order in which it was read.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) holds: Vec<Hold>,
    pub(crate) waits: Vec<Wait>,
    /// When a process heard that it had lost a lock.
    pub(crate) losses: Vec<u64>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) faults: Vec<Fault>,
    /// When each process that is there no more ended.
    pub(crate) gone: BTreeMap<u32, u64>,
    pub(crate) samples: Vec<Sample>,
    /// The keys that were left at the end, with their TTL in milliseconds.
    pub(crate) left: Vec<(String, i64)>,
    pub(crate) sizes: Vec<Size>,
    /// How often grants were claimed, as each process says.
    pub(crate) claims: u64,
    pub(crate) span: (u64, u64),
}

/// `hold PID KEY TOKEN DEADLINE BEGIN END LATE`: a process believed in a lock, from one look at its lease to another.
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

/// `wait PID NUMBER KEY BEGIN END`: a call waited for a lock; the end is zero while it does.
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

/// `fault KIND BEGIN END window|-`: something was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Two may hold a lock at once in it, as the documentation says.
    pub(crate) is_window: bool,
}

/// `sample KEY AT PACE OWNER`: what the server had at a lock's key; `-` is nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) key: String,
    pub(crate) at: u64,
    /// The milliseconds that the machine has given to the process that looked.
    pub(crate) pace: u64,
    /// A hash of the owner token.
    pub(crate) owner: Option<String>,
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
            ["hold", rest @ ..] => self.holds.push(hold(rest)?),
            ["wait", rest @ ..] => self.waits.push(wait(rest)?),
            ["lost", at] => self.losses.push(at.parse().ok()?),
            ["effect", rest @ ..] => self.effects.push(effect(rest)?),
            ["fault", rest @ ..] => self.faults.push(fault(rest)?),
            ["gone", pid, at] => drop(self.gone.insert(pid.parse().ok()?, at.parse().ok()?)),
            ["sample", rest @ ..] => self.samples.push(sample(rest)?),
            ["left", ttl, name] => self.left.push(((*name).to_owned(), ttl.parse().ok()?)),
            ["size", rest @ ..] => self.sizes.push(size(rest)?),
            ["claims", count] => self.claims += count.parse::<u64>().ok()?,
            ["span", begin, end] => self.span = (begin.parse().ok()?, end.parse().ok()?),
            _ => return None,
        }
        Some(())
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
        let mut waits: BTreeMap<(u32, u64), Wait> = BTreeMap::new();
        for wait in self.waits.drain(..) {
            let known = waits.entry((wait.pid, wait.number)).or_insert_with(|| wait.clone());
            known.end = known.end.max(wait.end);
        }
        self.waits = waits.into_values().collect();
        self.samples.sort_by_key(|sample| sample.at);
        self.faults.sort_by_key(|fault| fault.begin);
        self
    }
}

fn hold(words: &[&str]) -> Option<Hold> {
    let [pid, key, token, deadline, begin, end, late] = words else { return None };
    Some(Hold {
        pid: pid.parse().ok()?,
        key: (*key).to_owned(),
        token: token.parse().ok()?,
        deadline: deadline.parse().ok()?,
        begin: begin.parse().ok()?,
        end: end.parse().ok()?,
        late: late.parse().ok()?,
    })
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

fn fault(words: &[&str]) -> Option<Fault> {
    let [kind, begin, end, effect] = words else { return None };
    Some(Fault {
        kind: (*kind).to_owned(),
        begin: begin.parse().ok()?,
        end: end.parse().ok()?,
        is_window: *effect == "window",
    })
}

fn sample(words: &[&str]) -> Option<Sample> {
    let [key, at, pace, owner] = words else { return None };
    Some(Sample {
        key: (*key).to_owned(),
        at: at.parse().ok()?,
        pace: pace.parse().ok()?,
        owner: Some((*owner).to_owned()).filter(|owner| owner != "-"),
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
