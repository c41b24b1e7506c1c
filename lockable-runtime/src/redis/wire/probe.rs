//! The steps that use each command and script of a lock once, on a key of its own, and what they show of a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::{mem, slice};

use ::redis::{Cmd, RedisError, Value};

use super::command;
use super::flaw::Flaw;
use super::script::{self, Names, is_unknown_script};
use super::server::{self, Mode, unfit_by_answers};
use super::session::Session;
use crate::core::backend::{Attempt, Renewal};
use crate::core::naming::namespace::Namespace;
use crate::core::process::clock::boot_time;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::{Origin, OwnerToken};
use crate::core::types::slot::Slot;
use crate::core::types::tag::tag;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::opener::Target;
use crate::redis::fault;

pub(crate) struct Probe {
    pub(crate) key: LockKey,
    /// Another key, for commands one by one, which may leave it taken for a moment.
    pub(crate) tried: LockKey,
    pub(crate) origin: Origin,
    pub(crate) prefix: String,
    /// The locker's namespace.
    pub(crate) namespace: Namespace,
    /// With the companion keys of the probe's own namespace.
    pub(crate) names: Names,
}

impl Probe {
    /// In that slot, unless the prefix puts all locks into another.
    pub(crate) fn new(prefix: &str, names: &Names, slot: Option<Slot>) -> Result<Self, LockError> {
        let prefix = prefix.to_owned();
        let namespace = names.namespace.clone();
        let origin = Origin::draw()?;
        let names = names.within(namespace.of_probe(origin));
        let tag = slot.map(|slot| format!(":{{{}}}", tag(slot))).unwrap_or_default();
        let key = LockKey::prefixed(&prefix, &format!("{}{tag}", names.namespace))?;
        let tried = LockKey::prefixed(&prefix, &format!("{}:tried{tag}", names.namespace))?;
        Ok(Self { key, tried, origin, prefix, namespace, names })
    }

    pub(crate) fn into_names(self) -> Names {
        self.names.within(self.namespace)
    }
}

pub(crate) struct ProbeResult {
    pub(crate) probe: Probe,
    steps: Vec<Step>,
    replies: Vec<Value>,
    /// Whether commands and scripts find different fence counters.
    is_split: bool,
    /// Whether a script cannot have keys of several slots.
    pub(crate) is_spread: bool,
}

pub(crate) async fn run(
    session: &Session<'_>,
    mut probe: Probe,
    steps: impl Fn(&Probe) -> Vec<Step>,
) -> Result<ProbeResult, Flaw> {
    let (steps, mut replies) = do_all(session, &mut probe, steps).await?;
    let (mut is_split, mut is_spread) = (false, false);
    // One that takes no write at all, as while it loads its data, shows nothing of others.
    let is_ready = replies.first().is_none_or(|first| first.clone().extract_error().is_ok());
    if are_scattered(&steps, &mut replies) && is_ready {
        let (_, replies) = do_all(session, &mut probe, one_by_one).await?;
        is_split = self::is_split(&replies);
        // A script that is refused for another reason, such as a full memory, shows nothing.
        is_spread = !is_split && replies.iter().all(|reply| matches!(reply, Value::Int(_)));
    }
    Ok(ProbeResult { probe, steps, replies, is_split, is_spread })
}

/// If the server does not know a script by name, or forbids names, the texts are sent.
async fn do_all(
    session: &Session<'_>,
    probe: &mut Probe,
    steps: impl Fn(&Probe) -> Vec<Step>,
) -> Result<(Vec<Step>, Vec<Value>), Flaw> {
    let by_name = steps(probe);
    let replies = send(session, &by_name).await?;
    let errors = || replies.iter().cloned().filter_map(|reply| reply.extract_error().err());
    let has_names = !errors().any(|error| fault::forbids_names(&error));
    if has_names && !errors().any(|error| is_unknown_script(&error)) {
        return Ok((by_name, replies));
    }
    probe.names.are_cached = false;
    let by_text = steps(probe);
    probe.names.are_cached = has_names;
    let replies = send(session, &by_text).await?;
    Ok((by_text, replies))
}

async fn send(session: &Session<'_>, steps: &[Step]) -> Result<Vec<Value>, Flaw> {
    let pipeline = command::pipeline(steps.iter().map(|step| step.command.clone()));
    // The client takes no empty one.
    if pipeline.is_empty() { Ok(Vec::new()) } else { session.call(&pipeline).await }
}

impl ProbeResult {
    /// What keeps locks from working there, in the order of the steps.
    pub(crate) fn flaws(&self, target: &Target) -> Vec<Flaw> {
        if self.is_split {
            return vec![Flaw::unfit(server::split(), target)];
        }
        let all = self.steps.iter().zip(&self.replies);
        let of_one_slot = all.clone().filter(|(step, _)| step.name != TOGETHER);
        if target.node.is_none()
            && let Some(unfit) = unfit_by_answers(of_one_slot.map(|(_, reply)| reply), target)
        {
            return vec![Flaw::unfit(unfit, target)];
        }
        let failed =
            all.filter_map(|(step, reply)| Some((step, reply.clone().extract_error().err()?)));
        failed.filter_map(|(step, error)| step.flaw(error, target)).collect()
    }
}

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) command: Cmd,
    pub(crate) advice: &'static str,
}

impl Step {
    pub(crate) fn command(name: &'static str, command: Cmd) -> Self {
        Self { name, command, advice: fault::NO_COMMAND }
    }

    pub(crate) fn script(name: &'static str, command: Cmd) -> Self {
        Self { name, command, advice: fault::NO_SCRIPTS }
    }

    fn flaw(&self, error: RedisError, target: &Target) -> Option<Flaw> {
        if self.name == OTHERS {
            return None;
        }
        let is_node = target.node.is_some();
        let mut flaw = Flaw::answered(self.name, error, self.advice, target);
        let error = flaw.error.as_ref()?;
        if self.name == TOGETHER && fault::is_cross_slot(error) {
            let message =
                "the server refuses a command with several locks, which are renewed one by one";
            flaw.finding = Finding::new(Severity::Info, Code::CrossSlotRefused, message);
        } else if is_node && fault::is_redirect(error) {
            // A slot that another node has by now, or that moves, says nothing about this one.
            let message = "the slot of the check's own lock was moved meanwhile";
            let moved = Finding::new(Severity::Info, Code::CheckIncomplete, message);
            flaw.finding = moved.advise("check again");
        } else if self.name == WAITING {
            flaw.fault = fault::About::Confirming.fault(&target.server, error);
        }
        Some(flaw)
    }
}

/// Reads keys all over the slots, if neither the mode nor the URL says whether other nodes have a part of them.
pub(crate) fn others(session: &Session<'_>, probe: &Probe, mode: Mode) -> Vec<Step> {
    let is_node = session.target.node.is_some();
    let is_open = matches!(mode, Mode::Cluster | Mode::Unknown) && !is_node;
    let command = if session.opener.is_for_reading { "PTTL" } else { "GET" };
    let read = |number| {
        let mut read = Cmd::new();
        read.arg(command).arg(format!("{}:{number}", probe.names.namespace));
        Step::command(OTHERS, read)
    };
    (0..if is_open { PROBED_SLOTS } else { 0 }).map(read).collect()
}

/// From acquiring to a published grant, then the steps of one probe, and back to nothing. Calls are made in the order
/// of sending: the first call of a script may contain its text.
pub(crate) fn steps(probe: &Probe, more: impl FnOnce() -> Vec<Step>) -> Vec<Step> {
    let Probe { key, origin, names, .. } = probe;
    let holder = attempt(key, *origin, 1);
    let waiter = attempt(key, *origin, 2);
    let renewals = [Renewal::new(&holder, Some(holder.ttl), boot_time())];
    let mut steps = vec![
        Step::command("acquiring a lock", command::set_lock(&holder)),
        // Before it is counted up, so that it has an end.
        Step::script("seeding a fence counter", script::seed(names, &holder, &[]).command),
        Step::command("counting up a fence counter", command::count(&names.namespace, &holder)),
        Step::script("renewing a lock", script::renew(names, &renewals).command),
        Step::script("queueing for a lock", script::enqueue(names, &waiter).command),
        // The waiter has the lock then if it listens; leaving frees it.
        Step::script("releasing a lock", script::release(names, &holder, None, None).command),
        Step::script("leaving a queue", script::leave(names, &waiter).command),
        // By name, whether the server knew the script or not.
        Step::script("acquiring a free lock from a queue", script::enqueue(names, &waiter).command),
    ];
    steps.extend(more());
    let clean_up = command::clean_up(&names.namespace, key);
    steps.extend(clean_up.map(|command| Step::command(CLEANING, command)));
    steps
}

/// Shows whether a script and a command find the same fence counters, all over the slots.
///
/// See "How is a sharding proxy detected?" in DESIGN.md.
pub(crate) fn together(Probe { names, prefix, .. }: &Probe) -> Vec<Step> {
    let tried = scattered(&names.namespace, prefix);
    if tried.is_empty() {
        return Vec::new();
    }
    vec![
        Step::script(MARKING_ALL, script::mark(names, &tried)),
        Step::command(UNMARKING_ALL, command::unmark(&names.namespace, &tried)),
    ]
}

/// As [`together`], but lock by lock: the second mark finds the first if the command in between missed it.
fn one_by_one(Probe { names, prefix, .. }: &Probe) -> Vec<Step> {
    let steps = |attempt: Arc<Attempt>| {
        let one = slice::from_ref(&attempt);
        let mark = || Step::script(MARKING, script::mark(names, one));
        let unmark = || Step::command(UNMARKING, command::unmark(&names.namespace, one));
        [mark(), unmark(), mark(), unmark()]
    };
    scattered(&names.namespace, prefix).into_iter().flat_map(steps).collect()
}

/// Locks all over the slots, at most one in each, because a counter has one mark.
fn scattered(namespace: &Namespace, prefix: &str) -> Vec<Arc<Attempt>> {
    let mut slots = HashSet::new();
    let tried = (0..2 * SCATTERED).filter_map(|_| tried(namespace, prefix));
    tried.filter(|attempt| slots.insert(attempt.slot)).take(SCATTERED).collect()
}

/// `None` if the system gives no randomness; then there are no locks either.
fn tried(namespace: &Namespace, prefix: &str) -> Option<Arc<Attempt>> {
    let origin = Origin::draw().ok()?;
    let key = LockKey::prefixed(prefix, &format!("{namespace}:{origin}")).ok()?;
    Some(attempt(&key, origin, 1))
}

/// Takes the replies about all of the locks, which refuse no connection; returns whether the command did not delete
/// what the script wrote.
fn are_scattered(steps: &[Step], replies: &mut [Value]) -> bool {
    for (step, reply) in steps.iter().zip(replies) {
        match step.name {
            MARKING_ALL => *reply = Value::Nil,
            UNMARKING_ALL => {
                let count = step.command.args_iter().skip(1).count();
                let all = Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
                return mem::replace(reply, Value::Nil) != all;
            }
            _ => {}
        }
    }
    false
}

/// Whether a command missed a mark that scripts found before and after it.
fn is_split(replies: &[Value]) -> bool {
    replies.chunks(4).any(|replies| {
        // No cluster refuses the keys of one lock for that.
        let refused = |reply: &Value| {
            reply.clone().extract_error().is_err_and(|error| fault::is_cross_slot(&error))
        };
        replies.starts_with(&[Value::Int(0), Value::Int(0), Value::Int(1)])
            || replies.iter().any(refused)
    })
}

/// With a TTL, because nothing cleans up after a killed process, or for a user who may not delete. It is long enough
/// for a slow server: an expired mark would look as if another server had it.
pub(crate) fn attempt(key: &LockKey, origin: Origin, number: u64) -> Arc<Attempt> {
    let owner = OwnerToken::at(origin, number, None);
    Arc::new(Attempt::owned(key.clone(), Ttl::DEFAULT, owner))
}

/// If two servers share the keys equally, each further lock has even odds to show it: all miss it once in 32 768
/// connections.
const SCATTERED: usize = 16;

const MARKING_ALL: &str = "marking fence counters of several slots by a script";
const UNMARKING_ALL: &str = "deleting the marks by a command";
const MARKING: &str = "marking a fence counter by a script";
const UNMARKING: &str = "deleting the mark by a command";
const CLEANING: &str = "cleaning up";
const OTHERS: &str = "reading a key of another slot";
pub(crate) const WAITING: &str = "waiting for replicas";
pub(crate) const BY_TEXT: &str = "sending the text of a script";

pub(crate) const TOGETHER: &str = "renewing locks together";

/// The number of slots in which keys are probed. All are at one of two equal shards once in four thousand million
/// times, and at one with nine tenths of the slots once in thirty.
const PROBED_SLOTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::naming::namespace::Channels;

    fn probe() -> Probe {
        let names = Names::uncached(Namespace::default(), Channels::Plain);
        Probe::new("", &names, None).unwrap()
    }

    fn value(reply: &str) -> Value {
        ::redis::parse_redis_value(format!("{reply}\r\n").as_bytes()).unwrap()
    }

    /// With that reply to both steps about all locks, unless the second has another.
    fn are_scattered_by(marked: &str, unmarked: Option<&str>) -> bool {
        let steps = together(&probe());
        let [_, unmarking] = &steps[..] else { panic!("two steps") };
        let all = i64::try_from(unmarking.command.args_iter().count() - 1).unwrap();
        assert!(all > 8);
        let mut replies = [value(marked), unmarked.map_or(Value::Int(all), value)];
        let are_scattered = are_scattered(&steps, &mut replies);
        assert_eq!(replies, [Value::Nil, Value::Nil], "it refuses no connection");
        are_scattered
    }

    fn is_split_by(replies: [&str; 3]) -> bool {
        let steps = one_by_one(&probe());
        assert!(steps.len() > 4 * 8);
        let last = value(replies[1]);
        let replies =
            steps.chunks(4).flat_map(|_| replies.map(value).into_iter().chain([last.clone()]));
        is_split(&replies.collect::<Vec<_>>())
    }

    const CROSS_SLOT: &str = "-CROSSSLOT Keys in request don't hash to the same slot";

    #[test]
    fn a_command_that_finds_all_marks_shows_one_server() {
        assert!(!are_scattered_by(":0", None));
        for unmarked in [":0", ":7", CROSS_SLOT, "-ERR all keys have to be at one server"] {
            assert!(are_scattered_by(":0", Some(unmarked)), "{unmarked}");
        }
        assert!(are_scattered_by(CROSS_SLOT, Some(":0")));
    }

    #[test]
    fn a_mark_that_a_command_misses_and_a_script_finds_shows_several_servers() {
        assert!(is_split_by([":0", ":0", ":1"]));
        assert!(!is_split_by([":0", ":1", ":0"]));
        assert!(is_split_by([CROSS_SLOT, ":0", CROSS_SLOT]));
    }

    /// After a step of the clock, or a loss of data.
    #[test]
    fn a_mark_that_is_gone_shows_nothing() {
        assert!(!is_split_by([":0", ":0", ":0"]));
    }

    #[test]
    fn a_mark_that_was_refused_shows_nothing() {
        let full = "-OOM command not allowed when used memory > 'maxmemory'";
        assert!(!is_split_by([full, ":0", full]));
        assert!(!is_split_by([":0", "-NOPERM this user has no permissions to run 'del'", ":1"]));
        assert!(!is_split_by(["-NOSCRIPT No matching script", ":0", ":0"]));
        let elsewhere = "-MOVED 1 127.0.0.1:7000";
        assert!(!is_split_by([elsewhere, elsewhere, elsewhere]));
    }
}
