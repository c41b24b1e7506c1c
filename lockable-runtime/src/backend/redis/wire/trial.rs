//! The steps that use every command and script of a lock once, on a key that no one else uses.

use std::collections::HashSet;
use std::sync::Arc;
use std::{mem, slice};

use ::redis::{Cmd, ServerErrorKind, Value};

use super::command;
use super::script::{self, Names};
use crate::backend::redis::fault;
use crate::backend::{Attempt, Renewal};
use crate::types::clock::boot_time;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::Ttl;
use crate::types::owner::{Origin, OwnerToken};

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
}

/// From acquiring to a grant that is published, and back to nothing but the fence counter.
pub(crate) fn steps(names: &Names, key: &LockKey, origin: Origin) -> Vec<Step> {
    let holder = attempt(key, origin, 1);
    let waiter = attempt(key, origin, 2);
    let renewals = [Renewal::new(&holder, Some(holder.ttl), boot_time())];
    vec![
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
    ]
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
pub(crate) fn is_spread(steps: &[Step], replies: &mut [Value]) -> bool {
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
pub(crate) fn is_split(steps: &[Step], replies: &[Value]) -> bool {
    let of = |name| {
        let named = steps.iter().zip(replies).filter(move |(step, _)| step.name == name);
        named.map(|(_, reply)| reply)
    };
    of(MARKING).zip(of(MEETING)).zip(of(CLEANING)).any(|((marked, met), cleaned)| {
        // After a step of the clock, or a loss of data, no one finds it.
        let is_missed = *met == Value::Int(0) && *cleaned != Value::Int(0);
        *marked == Value::Okay && (is_missed || is_cross_slot(met))
    })
}

/// No cluster refuses the keys of one lock for that.
fn is_cross_slot(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::CrossSlot))
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
pub(crate) const CLEANING: &str = "cleaning up";

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
