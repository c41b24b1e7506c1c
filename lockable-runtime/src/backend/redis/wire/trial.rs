//! The steps that use every command and script of a lock once, on a key that no one else uses.

use std::sync::Arc;

use ::redis::{Cmd, ServerErrorKind, Value};

use super::command;
use super::script::{Enqueue, Leave, Meet, Names, Release, Renew, Seed};
use crate::backend::redis::fault;
use crate::backend::{Attempt, Renewal};
use crate::types::clock::boot_time;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken};

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
    let release = Release { attempt: &holder, taken_for: None, next: None };
    vec![
        Step::command("acquiring a lock", command::set_lock(&holder)),
        // Before it is counted up, so that it has an end.
        Step::script("seeding a fence counter", names.command(&Seed(&holder))),
        Step::command("counting up a fence counter", command::count(&names.namespace, &holder)),
        Step::script("renewing a lock", names.command(&Renew(&renewals))),
        Step::script("queueing for a lock", names.command(&Enqueue(&waiter))),
        // The waiter has the lock then if it listens; leaving frees it.
        Step::script("releasing a lock", names.command(&release)),
        Step::script("leaving a queue", names.command(&Leave(&waiter))),
        Step::script("acquiring a free lock from a queue", names.command(&Enqueue(&waiter))),
        Step::script("leaving with a lock", names.command(&Leave(&waiter))),
    ]
}

/// Whether commands and scripts find the same fence counter, tried with locks all over the slots.
///
/// See "How is a sharding proxy detected?" in DESIGN.md.
pub(crate) fn meetings(names: &Names, prefix: &str) -> Vec<Step> {
    (0..MEETINGS).filter_map(|_| meeting(names, prefix)).flatten().collect()
}

/// Where the system gives no randomness, there are no locks either.
fn meeting(names: &Names, prefix: &str) -> Option<[Step; 3]> {
    let namespace = &names.namespace;
    let origin = Origin::draw().ok()?;
    let key = LockKey::prefixed(prefix, &format!("{namespace}:{origin}")).ok()?;
    let attempt = attempt(&key, origin, 1);
    Some([
        Step::command(MARKING, command::mark(namespace, &attempt)),
        Step::script(MEETING, names.command(&Meet(&attempt))),
        Step::command(CLEANING, command::unmark(namespace, &attempt)),
    ])
}

/// Whether a script did not find what a command had written.
pub(crate) fn is_split(steps: &[Step], replies: &[Value]) -> bool {
    let mut is_marked = false;
    steps.iter().zip(replies).any(|(step, reply)| match step.name {
        MARKING => {
            is_marked = *reply == Value::Okay;
            false
        }
        MEETING => is_marked && (*reply == Value::Int(0) || is_cross_slot(reply)),
        _ => false,
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
    Arc::new(Attempt::owned(key.clone(), Ttl::DEFAULT.provisional(), owner))
}

/// Of two servers that share the keys equally, each of these finds out with every second lock: all of them
/// miss it once in 65 536 connections.
const MEETINGS: usize = 16;

const MARKING: &str = "writing a fence counter";
const MEETING: &str = "finding a fence counter by a script";
pub(crate) const CLEANING: &str = "cleaning up";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::namespace::{Channels, Namespace};

    /// Of one of the locks; the replies are in the words of the protocol.
    fn is_split_by(marked: &str, met: &str) -> bool {
        let steps = meetings(&Names::uncached(Namespace::default(), Channels::Plain), "");
        assert_eq!(steps.len(), 3 * MEETINGS);
        let replies = [marked, met, ":1"].map(|reply| format!("{reply}\r\n"));
        let replies = replies.map(|reply| ::redis::parse_redis_value(reply.as_bytes()).unwrap());
        is_split(&steps, &replies)
    }

    #[test]
    fn a_mark_that_no_script_finds_shows_several_servers() {
        assert!(is_split_by("+OK", ":0"));
        assert!(!is_split_by("+OK", ":1"));
        assert!(is_split_by("+OK", "-CROSSSLOT Keys in request don't hash to the same slot"));
    }

    /// A full server has no mark to be found, and one without scripts finds none.
    #[test]
    fn a_mark_that_was_refused_shows_nothing() {
        assert!(!is_split_by("-OOM command not allowed", ":0"));
        assert!(!is_split_by("+OK", "-OOM command not allowed"));
        assert!(!is_split_by("+OK", "-NOSCRIPT No matching script"));
        assert!(!is_split_by("-MOVED 1 127.0.0.1:7000", "-MOVED 1 127.0.0.1:7000"));
    }
}
