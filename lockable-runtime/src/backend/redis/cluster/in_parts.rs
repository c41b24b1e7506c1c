//! The verbs of a lock whose slot moves key by key: by commands of one key each, of which each goes where its key
//! is.
//!
//! See "Why does a release ask for less while its slot moves?" in DESIGN.md.

use std::slice;
use std::sync::Arc;

use ::redis::{Cmd, Value};

use super::answers::Meaning;
use super::hops::Hops;
use super::nodes::Cluster;
use super::routes::Lines;
use crate::backend::redis::fault;
use crate::backend::redis::wire::command;
use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::script::{
    Call, FreeOne, Inspect, Names, Renew, Seed, is_unknown_script,
};
use crate::backend::{
    Acquisition, Attempt, Enqueued, Fault, Grant, Held, Release, Renewal, Renewed, Reserved,
};
use crate::types::clock::boot_time;
use crate::types::key::LockKey;
use crate::types::slot::Slot;
use crate::types::token::FencingToken;

/// A request about one key.
trait OneKey: Sync {
    fn command(&self, names: &Names) -> Cmd;

    /// The same where the server does not know a script by its name.
    fn by_text(&self, names: &Names) -> Cmd;
}

impl<C: Call + Sync> OneKey for C {
    fn command(&self, names: &Names) -> Cmd {
        names.command(self)
    }

    fn by_text(&self, names: &Names) -> Cmd {
        names.by_text(self)
    }
}

/// A plain command.
struct Plain(Cmd);

impl OneKey for Plain {
    fn command(&self, _: &Names) -> Cmd {
        self.0.clone()
    }

    fn by_text(&self, names: &Names) -> Cmd {
        self.command(names)
    }
}

/// To take an attempt out of the queue.
struct Leaving<'a>(&'a Attempt);

impl OneKey for Leaving<'_> {
    fn command(&self, names: &Names) -> Cmd {
        command::leave_queue(&names.namespace, self.0)
    }

    fn by_text(&self, names: &Names) -> Cmd {
        self.command(names)
    }
}

/// An answer about one key.
struct Answer {
    reply: Value,
    connection: Arc<Connection>,
    /// Whether the answer to an earlier request was lost.
    is_repeated: bool,
}

impl Cluster {
    /// The lock first, and then its fencing token: it is counted while the lock is held, which the last look
    /// shows.
    pub(crate) async fn acquire(&self, attempt: &Attempt) -> Result<Acquisition, Fault> {
        let since = attempt.mark_sent(boot_time());
        let Some(token) = self.lock(attempt).await? else { return Ok(Acquisition::Busy) };
        let owner = self.ask_for(attempt.slot, &Plain(command::owner(attempt))).await?;
        let is_own = command::is_own(&owner.reply, attempt);
        Ok(if is_own.map_err(|error| owner.connection.fault(&error))? {
            Acquisition::Granted { fencing_token: FencingToken::new(token), since }
        } else {
            Acquisition::Busy
        })
    }

    /// Acquires the lock, or waits in no queue: the call asks again within a second.
    ///
    /// The lock may be the attempt's since long ago: it was handed off, or an earlier request took it. So the last
    /// look makes it last, as a place in the queue that is granted does, and the lease counts from there.
    pub(crate) async fn enqueue(&self, attempt: &Arc<Attempt>) -> Result<Enqueued, Fault> {
        attempt.mark_sent(boot_time());
        let busy = Enqueued::Queued { remaining: None };
        let Some(first) = self.lock(attempt).await? else { return Ok(busy) };
        let sent = boot_time();
        let renewal = Renewal::new(attempt, Some(attempt.ttl), sent);
        Ok(match self.renew_in_parts(&renewal).await? {
            Renewed::Held => {
                self.leave_queue(attempt).await;
                let fence = Reserved { first, passes: 0 };
                Enqueued::Granted(Grant::answered(attempt, fence, sent, attempt.ttl))
            }
            Renewed::Absent | Renewed::Taken => busy,
        })
    }

    /// Sets the lock and counts its fencing token; `None` where another holder has it.
    async fn lock(&self, attempt: &Attempt) -> Result<Option<u64>, Fault> {
        let locked = self.ask_for(attempt.slot, &Plain(command::set_lock(attempt))).await?;
        let is_granted = command::is_granted(&locked.reply, attempt);
        if !is_granted.map_err(|error| locked.connection.fault(&error))? {
            return Ok(None);
        }
        let seeded = self.ask_for(attempt.slot, &Seed(attempt)).await?;
        let token = command::integer(&seeded.reply).map_err(|error| {
            let (fault, names) = (seeded.connection.fault(&error), &seeded.connection.names);
            fault::of_fence(fault, &names.namespace, &attempt.key)
        })?;
        Ok(Some(token))
    }

    /// Takes the attempt out of the queue, if that is soon done. What is left there would be granted some time,
    /// unwanted, and stop the others until it is released.
    async fn leave_queue(&self, attempt: &Attempt) {
        let leave = Leaving(attempt);
        let left = self.ask_for(attempt.slot, &leave);
        let limit = self.opener.command_deadline / 4;
        let _left: Option<Result<Answer, Fault>> = self.opener.within(limit, left).await;
    }

    /// Frees the lock; the calls that wait for it ask within a second.
    pub(crate) async fn release(&self, attempt: &Attempt) -> Result<Release, Fault> {
        let taken_for = attempt.min_hold.rest(boot_time);
        let free = FreeOne { attempt, taken_for };
        let Answer { reply, connection, is_repeated } = self.ask_for(attempt.slot, &free).await?;
        match free.outcome(reply).map_err(|error| connection.fault(&error))? {
            Release::Absent | Release::Taken if is_repeated => {
                Err(fault::unsure_release(&self.opener.server))
            }
            found => Ok(found),
        }
    }

    /// Frees a lock that was granted meanwhile.
    pub(crate) async fn leave(&self, attempt: &Attempt) -> Result<(), Fault> {
        self.leave_queue(attempt).await;
        let free = FreeOne { attempt, taken_for: None };
        let Answer { reply, connection, .. } = self.ask_for(attempt.slot, &free).await?;
        free.outcome(reply).map(drop).map_err(|error| connection.fault(&error))
    }

    pub(crate) async fn inspect(&self, key: &LockKey) -> Result<Option<Held>, Fault> {
        let inspect = Inspect(key);
        let Answer { reply, connection, .. } = self.ask_for(Slot::of(key), &inspect).await?;
        inspect.outcome(reply).map_err(|error| connection.fault(&error))
    }

    /// The answer to a plain command about one key of the slot, over the connections that look at locks.
    pub(crate) async fn answer(&self, slot: Slot, command: Cmd) -> Result<Value, Fault> {
        let asked = self.ask_over(|member| &member.readers, slot, &Plain(command)).await;
        asked.map(|answer| answer.reply)
    }

    pub(super) async fn renew_in_parts(&self, renewal: &Renewal) -> Result<Renewed, Fault> {
        let renew = Renew(slice::from_ref(renewal));
        let Answer { reply, connection, .. } = self.ask_for(renewal.attempt.slot, &renew).await?;
        let outcomes = renew.outcome(reply);
        // One renewal has one outcome.
        let only = outcomes.and_then(|each| each.into_iter().next().unwrap_or(Ok(Renewed::Absent)));
        only.map_err(|error| connection.fault(&error))
    }

    /// Sends a request about one key of the slot to where that key is.
    ///
    /// Only its own answer says that. A fence counter that another key's answer leads to the next node would be
    /// made there, and then the operator's `MIGRATE` of the old one would fail.
    async fn ask_for(&self, slot: Slot, request: &dyn OneKey) -> Result<Answer, Fault> {
        self.ask_over(|member| &member.connections, slot, request).await
    }

    async fn ask_over(&self, of: Lines, slot: Slot, request: &dyn OneKey) -> Result<Answer, Fault> {
        let (mut hops, mut next) = (Hops::begin(), None);
        let (mut is_repeated, mut has_broken) = (false, false);
        loop {
            let is_asking = next.is_some();
            let connection = match next.take() {
                Some(place) => {
                    let member = self.member_at(&place, slot);
                    self.doubting(of(&member).ready()).await?
                }
                None => self.ready_over(of, slot, &mut hops).await?,
            };
            let reply = match connection.unless_left(send(&connection, request, is_asking)).await {
                Some(Ok(reply)) => reply,
                Some(Err(_)) if connection.is_retired() && !has_broken => {
                    (is_repeated, has_broken) = (true, true);
                    continue;
                }
                Some(Err(fault)) => return Err(fault),
                None => {
                    is_repeated = true;
                    continue;
                }
            };
            let Some(asked) = connection.node() else { return Err(connection.runtime_ended()) };
            let Err(error) = reply.clone().extract_error() else {
                return Ok(Answer { reply, connection, is_repeated });
            };
            match Meaning::of_error(&error, asked) {
                Meaning::Moved(place) => {
                    // The node to which the slot moves names the one that has it still.
                    if !is_asking {
                        self.move_slot(slot, asked, &place);
                    }
                    hops.redirect(connection.fault(&error), &self.opener).await?;
                }
                Meaning::Asks(place) => {
                    hops.redirect(connection.fault(&error), &self.opener).await?;
                    next = Some(place);
                }
                Meaning::Split | Meaning::Passes => {
                    self.again(connection.fault(&error), &mut hops).await?;
                }
                Meaning::Stays => return Ok(Answer { reply, connection, is_repeated }),
            }
        }
    }
}

async fn send(
    connection: &Connection,
    request: &dyn OneKey,
    is_asking: bool,
) -> Result<Value, Fault> {
    let names = &connection.names;
    let reply = send_one(connection, request.command(names), is_asking).await?;
    if is_unknown_script(&reply) {
        return send_one(connection, request.by_text(names), is_asking).await;
    }
    Ok(reply)
}

/// `ASKING` counts for the next command of the connection, so both go in one write.
async fn send_one(connection: &Connection, command: Cmd, is_asking: bool) -> Result<Value, Fault> {
    if !is_asking {
        let reply = connection.call(&command::pipeline([command])).await?.pop();
        return Ok(reply.unwrap_or(Value::Nil));
    }
    let [asking, reply] = connection.two([command::asking(), command]).await?;
    let is_refused = matches!(asking, Value::ServerError(_));
    Ok(if is_refused { asking } else { reply })
}
