//! The verbs of a lock whose slot moves key by key: commands of one key each, sent where the key is.
//!
//! See "How is a lock used while its slot migrates?" in DESIGN.md.

use std::marker::PhantomData;
use std::sync::Arc;

use ::redis::{Cmd, RedisError, RedisResult, Value};

use super::{KeyCount, Ran, Request, Router, sure};
use crate::core::backend::{
    AcquireReply, Attempt, Enqueued, Fault, Grant, Release, Remaining, Renewal, Renewed, Reserved,
};
use crate::core::process::clock::boot_time;
use crate::core::types::key::LockKey;
use crate::core::types::owner::Held;
use crate::core::types::slot::Slot;
use crate::redis::fault;
use crate::redis::topology::server::Server;
use crate::redis::wire::command::{self, Locked};
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::{Failed, Meaning};
use crate::redis::wire::script::{self, Names, Read, ScriptCall};

impl Router {
    /// First the lock, then its fencing token, which is counted while the lock is held, as the last check shows.
    pub(crate) async fn acquire_in_parts(&self, attempt: &Attempt) -> Result<AcquireReply, Fault> {
        match self.set(attempt).await? {
            Locked::Own => {}
            Locked::Busy => return Ok(AcquireReply::Busy),
            Locked::Done => return Ok(AcquireReply::Done),
        }
        let fence = Reserved::single(self.count(attempt).await?);
        let grant = Grant::answered(attempt, fence, attempt.sent_at().unwrap_or_default());
        let is_own = self.is_own(attempt).await?;
        Ok(if is_own { AcquireReply::Granted(grant) } else { AcquireReply::Busy })
    }

    /// Acquires the lock, or is not queued: the call tries again within a second.
    ///
    /// The lock may have been the attempt's for long: it was handed off to it, or an earlier request took it. So the
    /// next request extends it, as a granted turn does, and the lease counts from there. Its fencing token is counted
    /// within that lease while the lock is held, as the last check shows.
    pub(crate) async fn enqueue_in_parts(&self, attempt: &Arc<Attempt>) -> Result<Enqueued, Fault> {
        let busy = Enqueued::Queued(Remaining::Unknown);
        match self.set(attempt).await? {
            Locked::Own => {}
            Locked::Busy => return Ok(busy),
            Locked::Done => return Ok(Enqueued::Done(Remaining::Unknown)),
        }
        let sent = boot_time();
        let renewal = Renewal::new(attempt, Some(attempt.ttl), sent);
        Ok(match self.renew_in_parts(&renewal).await? {
            Renewed::Held => {
                let fence = Reserved::single(self.count(attempt).await?);
                self.leave_queue(attempt).await;
                if !self.is_own(attempt).await? {
                    return Ok(busy);
                }
                Enqueued::Granted(Grant::answered(attempt, fence, sent))
            }
            Renewed::Absent | Renewed::Taken => busy,
        })
    }

    async fn is_own(&self, attempt: &Attempt) -> Result<bool, Fault> {
        let owner = one(|_: &Names| {
            plain(command::owner(attempt), |reply| command::is_own(reply, attempt))
        });
        Ok(self.send(attempt.slot, Server::lockers, &owner).await?.found)
    }

    async fn set(&self, attempt: &Attempt) -> Result<Locked, Fault> {
        attempt.mark_sent(boot_time());
        let set = one(|_: &Names| {
            plain(command::set_lock(attempt), |reply| command::locked(reply, attempt))
        });
        Ok(self.send(attempt.slot, Server::lockers, &set).await?.found)
    }

    pub(crate) async fn count(&self, attempt: &Attempt) -> Result<u64, Fault> {
        let seed = one(|names: &Names| script::seed(names, attempt, &[]));
        let seeded = self.send(attempt.slot, Server::lockers, &seed).await;
        let namespace = &self.topology.opener.namespace;
        let seeded = seeded.map_err(|fault| fault::of_fence(fault, namespace, &attempt.key));
        Ok(seeded?.found.token)
    }

    /// Takes the attempt out of the queue, if that is soon done. An entry that stays would keep a freed lock for a
    /// time, and the others would wait for a second.
    async fn leave_queue(&self, attempt: &Attempt) {
        let leave =
            one(|names: &Names| plain(command::leave_queue(&names.namespace, attempt), |_| Ok(())));
        let left = self.send(attempt.slot, Server::lockers, &leave);
        let opener = &self.topology.opener;
        let _left: Option<Result<Ran<()>, Fault>> =
            opener.within(opener.command_deadline / 4, left).await;
    }

    /// Frees the lock; waiters try again within a second.
    pub(crate) async fn release_in_parts(&self, attempt: &Attempt) -> Result<Release, Fault> {
        let taken_for = attempt.min_hold.rest(boot_time);
        let free = one(|names: &Names| script::free_one(names, attempt, taken_for));
        let Ran { found, before, .. } = self.send(attempt.slot, Server::lockers, &free).await?;
        sure(found, &before, &self.topology.opener.server)
    }

    pub(crate) async fn leave_in_parts(&self, attempt: &Attempt) -> Result<(), Fault> {
        self.leave_queue(attempt).await;
        let free = one(|names: &Names| script::free_one(names, attempt, None));
        self.send(attempt.slot, Server::lockers, &free).await.map(drop)
    }

    pub(crate) async fn inspect(&self, key: &LockKey) -> Result<Option<Held>, Fault> {
        let inspect = one(|names: &Names| script::inspect(names, key));
        self.send(Slot::of(key), Server::lockers, &inspect).await.map(|ran| ran.found)
    }

    pub(super) async fn renew_in_parts(&self, renewal: &Renewal) -> Result<Renewed, Fault> {
        let renew = one(|names: &Names| script::renew_one(names, renewal));
        self.send(renewal.attempt.slot, Server::lockers, &renew).await.map(|ran| ran.found)
    }

    /// The replies to commands that check one key each, all of one slot.
    pub(crate) async fn replies(&self, slot: Slot, commands: &[Cmd]) -> Result<Vec<Value>, Fault> {
        let checks = Checks { slot, commands };
        self.send(slot, Server::readers, &checks).await.map(|ran| ran.found)
    }

    async fn replies_in_parts(&self, slot: Slot, commands: &[Cmd]) -> Result<Vec<Value>, Fault> {
        let opener = &self.topology.opener;
        let limit = opener.command_deadline.saturating_mul(2);
        let mut replies = Vec::with_capacity(commands.len());
        for command in commands {
            let copy = one(|_: &Names| plain(command.clone(), |reply| Ok(reply.clone())));
            let ran = opener.within(limit, self.send(slot, Server::readers, &copy)).await;
            let ran = ran.unwrap_or_else(|| Err(Fault::no_answer(&opener.server, limit)));
            replies.push(ran?.found);
        }
        Ok(replies)
    }
}

struct Checks<'a> {
    slot: Slot,
    commands: &'a [Cmd],
}

impl Request for Checks<'_> {
    type Found = Vec<Value>;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Vec<Value>, Failed> {
        let together = command::pipeline(self.commands.iter().cloned());
        let replies = connection.call_in_time(&together).await;
        // A connection that gives no answer in time is not used again.
        let replies = replies.inspect_err(|_| connection.retire())?;
        let failed = replies.iter().find_map(|reply| elsewhere(connection, reply));
        failed.map_or(Ok(replies), Err)
    }

    async fn in_parts(&self, router: &Router, _: Failed) -> Result<Vec<Value>, Failed> {
        Ok(router.replies_in_parts(self.slot, self.commands).await?)
    }
}

struct One<C, T>(C, PhantomData<fn() -> T>);

fn one<C: Fn(&Names) -> ScriptCall<R>, T, R: Read<T>>(call: C) -> One<C, T> {
    One(call, PhantomData)
}

impl<C, T, R> Request for One<C, T>
where
    C: Fn(&Names) -> ScriptCall<R> + Sync,
    R: Read<T> + Send,
    T: Send,
{
    type Found = T;
    const KEYS: KeyCount = KeyCount::One;

    async fn send(&self, connection: &Arc<Connection>, is_asking: bool) -> Result<T, Failed> {
        let ScriptCall { command, read } = (self.0)(&connection.names);
        let reply = send_one(connection, command, is_asking).await?;
        match elsewhere(connection, &reply) {
            Some(failed) => Err(failed),
            None => read(reply).map_err(|error| connection.failed(&error)),
        }
    }
}

/// A command whose reply is read as it is, even an error.
fn plain<T>(command: Cmd, read: impl FnOnce(&Value) -> RedisResult<T>) -> ScriptCall<impl Read<T>> {
    ScriptCall { command, read: move |reply: Value| read(&reply) }
}

/// `ASKING` counts for the connection's next command, so both go in one write.
pub(crate) async fn send_one(
    connection: &Connection,
    command: Cmd,
    is_asking: bool,
) -> Result<Value, Fault> {
    if !is_asking {
        return connection.evaluate(&command).await;
    }
    let [asking, reply] = connection.two([command::asking(), command]).await?;
    let is_refused = matches!(asking, Value::ServerError(_));
    Ok(if is_refused { asking } else { reply })
}

/// The failure, if the reply is an error after which the command is redirected or repeated.
fn elsewhere(connection: &Connection, reply: &Value) -> Option<Failed> {
    let Value::ServerError(error) = reply else { return None };
    let error = RedisError::from(error.clone());
    (connection.meaning(&error) != Meaning::Stays).then(|| connection.failed(&error))
}
