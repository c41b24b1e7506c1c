//! The steps that use every command and script of a lock once, on a key that no one else uses, and what they show of a
//! server.

use std::collections::HashSet;
use std::sync::Arc;
use std::{mem, slice};

use ::redis::{Cmd, RedisError, Value};

use super::command;
use super::flaw::Flaw;
use super::script::{self, Names, is_unknown_script};
use super::server::{self, Mode, unfit_by_answers};
use super::session::Session;
use crate::backend::redis::connect::opener::Target;
use crate::backend::redis::fault;
use crate::backend::{Attempt, Renewal};
use crate::check::{Code, Finding, Severity};
use crate::types::clock::boot_time;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::owner::{Origin, OwnerToken};
use crate::types::slot::Slot;
use crate::types::tag::tag;

/// The lock that a trial does everything with.
pub(crate) struct Probe {
    pub(crate) key: LockKey,
    /// Another one, for commands one by one: they may leave it taken for a moment.
    pub(crate) tried: LockKey,
    /// The process that its waiters claim to be of.
    pub(crate) origin: Origin,
    pub(crate) prefix: String,
    /// Of the locker's own, where its lockers' companion keys are.
    pub(crate) namespace: Namespace,
    /// Those of the probe's companion keys are of a trial.
    pub(crate) names: Names,
}

impl Probe {
    /// In that slot, where the prefix does not put all locks into another.
    pub(crate) fn new(prefix: &str, names: &Names, slot: Option<Slot>) -> Result<Self, LockError> {
        let prefix = prefix.to_owned();
        let namespace = names.namespace.clone();
        let origin = Origin::draw()?;
        let names = names.within(namespace.of_trial(origin));
        let tag = slot.map(|slot| format!(":{{{}}}", tag(slot))).unwrap_or_default();
        let key = LockKey::prefixed(&prefix, &format!("{}{tag}", names.namespace))?;
        let tried = LockKey::prefixed(&prefix, &format!("{}:tried{tag}", names.namespace))?;
        Ok(Self { key, tried, origin, prefix, namespace, names })
    }

    /// With what calls about other locks are written.
    pub(crate) fn into_names(self) -> Names {
        self.names.within(self.namespace)
    }
}

/// What was done with the lock of a probe, and what the server answered.
pub(crate) struct Tried {
    pub(crate) probe: Probe,
    steps: Vec<Step>,
    replies: Vec<Value>,
    /// Whether keys of several slots are not for one script.
    pub(crate) is_spread: bool,
}

/// Does these steps. A server that does not know a script by its name any more is sent the texts.
pub(crate) async fn run(
    session: &Session<'_>,
    mut probe: Probe,
    steps: impl Fn(&Probe) -> Vec<Step>,
) -> Result<Tried, Flaw> {
    let mut is_repeated = false;
    loop {
        let steps = steps(&probe);
        let pipeline = command::pipeline(steps.iter().map(|step| step.command.clone()));
        // The client takes no empty pipeline.
        let is_empty = pipeline.is_empty();
        let mut replies = if is_empty { Vec::new() } else { session.call(&pipeline).await? };
        let mut errors = replies.iter().cloned().filter_map(|reply| reply.extract_error().err());
        if is_repeated || !errors.any(|error| is_unknown_script(&error)) {
            let is_spread = is_spread(&steps, &mut replies);
            return Ok(Tried { probe, steps, replies, is_spread });
        }
        probe.names = Names::uncached(probe.names.namespace.clone(), session.opener.channels);
        is_repeated = true;
    }
}

impl Tried {
    /// What keeps locks from working there, in the order of the steps.
    pub(crate) fn flaws(&self, target: &Target) -> Vec<Flaw> {
        if is_split(&self.steps, &self.replies) {
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
    /// What to do where the server does not have the command.
    pub(crate) advice: &'static str,
}

impl Step {
    pub(crate) fn command(name: &'static str, command: Cmd) -> Self {
        Self { name, command, advice: fault::NO_COMMAND }
    }

    pub(crate) fn script(name: &'static str, command: Cmd) -> Self {
        Self { name, command, advice: fault::NO_SCRIPTS }
    }

    /// The right to send the text of a script is needed only where the server forgot its name.
    fn flaw(&self, error: RedisError, target: &Target) -> Option<Flaw> {
        if self.name == OTHERS || (self.name == BY_TEXT && fault::is_missing_right(&error)) {
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

/// Asks whether other nodes have a part of the keys, where the mode leaves that open, and the URL does not say it: by
/// a command that the user may send, for keys all over the slots of a cluster.
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

/// From acquiring to a grant that is published; then those steps that only one trial has; and back to nothing.
pub(crate) fn steps(probe: &Probe, more: Vec<Step>) -> Vec<Step> {
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
        Step::script("acquiring a free lock from a queue", script::enqueue(names, &waiter).command),
        Step::script("leaving with a lock", script::leave(names, &waiter).command),
    ];
    steps.extend(more);
    let clean_up = command::clean_up(&names.namespace, key);
    steps.extend(clean_up.map(|command| Step::command(CLEANING, command)));
    steps
}

/// Whether commands and scripts find the same fence counter, tried with locks all over the slots, and then with all of
/// them in one script.
///
/// See "How is a sharding proxy detected?" in DESIGN.md.
pub(crate) fn meetings(names: &Names, prefix: &str) -> Vec<Step> {
    let namespace = &names.namespace;
    let mut tried: Vec<_> = (0..MEETINGS).filter_map(|_| tried(namespace, prefix)).collect();
    // A counter has the mark of one lock.
    let mut slots = HashSet::new();
    tried.retain(|attempt| slots.insert(attempt.slot));
    let met = tried.iter().flat_map(|attempt| {
        let meet = script::meet(names, slice::from_ref(attempt));
        [Step::command(MARKING, command::mark(namespace, attempt)), Step::script(MEETING, meet)]
    });
    let all = (!tried.is_empty()).then(|| Step::script(GATHERING, script::meet(names, &tried)));
    let clean =
        |attempt: &Arc<Attempt>| Step::command(CLEANING, command::unmark(namespace, attempt));
    met.chain(all).chain(tried.iter().map(clean)).collect()
}

/// Where the system gives no randomness, there are no locks either.
fn tried(namespace: &Namespace, prefix: &str) -> Option<Arc<Attempt>> {
    let origin = Origin::draw().ok()?;
    let key = LockKey::prefixed(prefix, &format!("{namespace}:{origin}")).ok()?;
    Some(attempt(&key, origin, 1))
}

/// Takes the reply to the script about all of the locks, which refuses no connection; returns whether it shows that
/// keys of several slots are not for one script.
fn is_spread(steps: &[Step], replies: &mut [Value]) -> bool {
    let mut are_marked = true;
    steps.iter().zip(replies).any(|(step, reply)| match step.name {
        MARKING => {
            are_marked &= *reply == Value::Okay;
            false
        }
        GATHERING => are_marked & (mem::replace(reply, Value::Nil) != Value::Int(1)),
        _ => false,
    })
}

/// Whether a script did not find what a command had written, and a later command found.
fn is_split(steps: &[Step], replies: &[Value]) -> bool {
    let of = |name| {
        let named = steps.iter().zip(replies).filter(move |(step, _)| step.name == name);
        named.map(|(_, reply)| reply)
    };
    of(MARKING).zip(of(MEETING)).zip(of(CLEANING)).any(|((marked, met), cleaned)| {
        // After a step of the clock, or a loss of data, no one finds it.
        let is_missed = *met == Value::Int(0) && *cleaned != Value::Int(0);
        // No cluster refuses the keys of one lock for that.
        let error = met.clone().extract_error().err();
        let is_refused = error.is_some_and(|error| fault::is_cross_slot(&error));
        *marked == Value::Okay && (is_missed || is_refused)
    })
}

/// With the shortest TTL, because nothing cleans up after a process that is killed, or for a user who
/// may delete nothing.
pub(crate) fn attempt(key: &LockKey, origin: Origin, number: u64) -> Arc<Attempt> {
    let owner = OwnerToken::at(origin, number, None);
    Arc::new(Attempt::owned(key.clone(), Ttl::DEFAULT.kept_turn(), owner))
}

/// Of two servers that share the keys equally, each of these finds out with every second lock: all of them
/// miss it once in 65 536 connections.
const MEETINGS: usize = 16;

const MARKING: &str = "writing a fence counter";
const MEETING: &str = "finding a fence counter by a script";
const GATHERING: &str = "finding fence counters of several slots by a script";
const CLEANING: &str = "cleaning up";
const OTHERS: &str = "reading a key of another slot";
pub(crate) const WAITING: &str = "waiting for replicas";
pub(crate) const BY_TEXT: &str = "sending the text of a script";

/// The one step with locks in several slots.
pub(crate) const TOGETHER: &str = "renewing locks together";

/// The number of slots in which keys are probed: all of these are with one of two equal shards once in
/// four thousand million times, and with one that has nine tenths of the slots once in thirty.
const PROBED_SLOTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::namespace::Channels;

    /// Of every lock; the replies are in the words of the protocol.
    fn is_split_by(marked: &str, met: &str, cleaned: &str) -> bool {
        let steps = meetings(&Names::uncached(Namespace::default(), Channels::Plain), "");
        assert!(steps.len() > 3 * MEETINGS / 2);
        let reply = |step: &Step| match step.name {
            MARKING => value(marked),
            MEETING => value(met),
            CLEANING => value(cleaned),
            _ => Value::Int(1),
        };
        is_split(&steps, &steps.iter().map(reply).collect::<Vec<_>>())
    }

    /// With the reply to the script about all of them.
    fn is_spread_by(marked: &str, gathered: &str) -> bool {
        let steps = meetings(&Names::uncached(Namespace::default(), Channels::Plain), "");
        let reply = |step: &Step| match step.name {
            MARKING => value(marked),
            GATHERING => value(gathered),
            _ => Value::Int(1),
        };
        let mut replies: Vec<_> = steps.iter().map(reply).collect();
        let is_spread = is_spread(&steps, &mut replies);
        let is_taken =
            replies.iter().all(|reply| matches!(reply, Value::Okay | Value::Int(1) | Value::Nil));
        assert!(is_taken || marked != "+OK", "it refuses no connection");
        is_spread
    }

    fn value(reply: &str) -> Value {
        ::redis::parse_redis_value(format!("{reply}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn a_mark_that_no_script_finds_shows_several_servers() {
        assert!(is_split_by("+OK", ":0", ":1"));
        assert!(!is_split_by("+OK", ":1", ":1"));
        assert!(is_split_by("+OK", "-CROSSSLOT Keys in request don't hash to the same slot", ":1"));
        // The user may delete nothing.
        assert!(is_split_by("+OK", ":0", "-NOPERM this user has no permissions to run 'del'"));
    }

    #[test]
    fn a_mark_that_is_gone_shows_nothing() {
        assert!(!is_split_by("+OK", ":0", ":0"));
    }

    #[test]
    fn a_script_that_does_not_find_all_marks_shows_a_proxy() {
        assert!(is_spread_by("+OK", ":0"));
        assert!(is_spread_by("+OK", "-CROSSSLOT Keys in request don't hash to the same slot"));
        assert!(is_spread_by("+OK", "-ERR all keys of a script have to be at one server"));
        assert!(!is_spread_by("+OK", ":1"));
        assert!(!is_spread_by("-OOM command not allowed", ":0"));
    }

    /// A full server has no mark to be found, and one without scripts finds none.
    #[test]
    fn a_mark_that_was_refused_shows_nothing() {
        assert!(!is_split_by("-OOM command not allowed", ":0", ":1"));
        assert!(!is_split_by("+OK", "-OOM command not allowed", ":1"));
        assert!(!is_split_by("+OK", "-NOSCRIPT No matching script", ":1"));
        let elsewhere = "-MOVED 1 127.0.0.1:7000";
        assert!(!is_split_by(elsewhere, elsewhere, elsewhere));
    }
}
