//! The steps that use every command and script of a lock once, on a key that no one else uses.

use std::sync::Arc;

use ::redis::Cmd;

use super::script::{Enqueue, Leave, Names, Release, Renew, Seed};
use super::{command, fault};
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
    let (holder, waiter) = (attempt(key, origin, 1), attempt(key, origin, 2));
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
    ]
}

/// With the shortest TTL, because nothing cleans up after a process that is killed, or for a user who
/// may delete nothing.
pub(crate) fn attempt(key: &LockKey, origin: Origin, number: u64) -> Arc<Attempt> {
    let owner = OwnerToken::at(origin, number, None);
    Arc::new(Attempt::owned(key.clone(), Ttl::DEFAULT.provisional(), owner))
}
