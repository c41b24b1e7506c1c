//! Acquiring without waiting: a lock and its fencing token in one round trip.

use std::iter;
use std::sync::Arc;

use ::redis::{Cmd, RedisError, RedisResult, Value};

use super::requests;
use crate::core::backend::{AcquireReply, Attempt, Enqueued, Fault, Grant, Reserved};
use crate::core::process::clock::{Moment, boot_time};
use crate::core::types::key::LockKey;
use crate::core::types::slot::Slot;
use crate::redis::fault;
use crate::redis::fences::{FenceCounters, SeededFence};
use crate::redis::wire::command::{self, Locked};
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;
use crate::redis::wire::permits::{Asker, Found};
use crate::redis::wire::script::{self, FenceCount, ScriptCall};

/// Acquires in one round trip; the first reply decides.
///
/// The fencing token is sound: an answer before the lease's deadline means that the counter went up while this attempt
/// held the lock.
pub(crate) async fn acquire(
    connection: &Arc<Connection>,
    attempt: &Attempt,
) -> Result<AcquireReply, Failed> {
    let now = boot_time();
    let since = attempt.mark_sent(now);
    let fences = &connection.fences;
    let seeded = fences.seeded(attempt.slot, attempt.ttl, now);
    let others = if seeded.is_some() { Vec::new() } else { others(connection, attempt) };
    let count = match seeded {
        Some(_) => command::count(&connection.names.namespace, attempt),
        None => script::seed(&connection.names, attempt, &others).command,
    };
    let replies = requests::pair(connection, [take(connection, attempt), count]).await?;
    let (taken, counted) = read(replies, attempt, &others);
    let is_refused = is_refused(connection, &others, &counted);
    let is_lost = counted.as_ref().is_ok_and(|count| is_lost(fences, attempt, seeded, now, count));
    // An error that the server answered shows that this request was granted nothing; an earlier one, which was not
    // answered, may have been.
    let taken = taken.map_err(|error| {
        let proves_absence = since == now && !fault::is_no_answer(&error);
        connection.failed(&error).map(|fault| Fault { proves_absence, ..fault })
    });
    if matches!(taken, Ok(Taken::InTurn)) {
        return Box::pin(take_in_turn(connection, attempt)).await;
    }
    let Ok(Taken::Granted { number }) = taken else {
        // `INCR` may just have made this counter, without an end.
        if is_lost
            && let Err(failed) = Box::pin(seed_alone(connection, attempt)).await
            && connection.is_retired()
        {
            return Err(failed);
        }
        return taken.map(|taken| {
            if matches!(taken, Taken::Done) { AcquireReply::Done } else { AcquireReply::Busy }
        });
    };
    if is_lost || is_refused {
        return Box::pin(seed_after(connection, attempt, number)).await;
    }
    let counted = counted.map_err(|error| of_fence(connection, &error, attempt))?;
    Ok(granted_at(attempt, counted.token, number))
}

fn take(connection: &Connection, attempt: &Attempt) -> Cmd {
    match Asker::of(attempt) {
        None => command::set_lock(attempt),
        Some(asker) => asker.take(&connection.names).command,
    }
}

/// Grants free permits to reachable waiters, and takes one that is left. The attempt does not stay in the queue.
async fn take_in_turn(connection: &Connection, attempt: &Attempt) -> Result<AcquireReply, Failed> {
    let Some(asker) = Asker::of(attempt) else { return Ok(AcquireReply::Busy) };
    let words = |fault| fault::of_queue(fault, &connection.names.namespace, attempt);
    let found = connection
        .run(asker.enqueue(&connection.names))
        .await
        .map_err(|failed| failed.map(words))?;
    let (Enqueued::Granted(fence), permit) = found else {
        connection.run(asker.leave(&connection.names)).await?;
        return Ok(AcquireReply::Busy);
    };
    Ok(granted(attempt, fence, permit))
}

/// The token of a grant whose counter was lost or not counted up.
async fn seed_after(
    connection: &Connection,
    attempt: &Attempt,
    number: u8,
) -> Result<AcquireReply, Failed> {
    let held = permit(attempt, number).map(|permit| attempt.with_permit(permit));
    let seeded = seed_alone(connection, held.as_deref().unwrap_or(attempt)).await?;
    Ok(seeded.map_or(AcquireReply::Busy, |token| granted_at(attempt, token, number)))
}

/// The fence counters to seed together with the attempt's; none if a script's keys have to be in one slot.
fn others(connection: &Connection, attempt: &Attempt) -> Vec<Slot> {
    if connection.is_sharded() {
        return Vec::new();
    }
    connection.fences.others(attempt.slot, attempt.ttl)
}

/// Whether to seed again without the others, and remembers that: the server may refuse several counters but accept one.
fn is_refused(connection: &Connection, others: &[Slot], counted: &RedisResult<FenceCount>) -> bool {
    let refused = |error: &&RedisError| !others.is_empty() && !script::is_unknown_script(error);
    let Some(error) = counted.as_ref().err().filter(refused) else { return false };
    connection.fences.seed_alone();
    let _fault: Fault = connection.fault(error);
    true
}

/// Notes what a request that was sent then has counted; returns whether the fence counter was lost.
fn is_lost(
    fences: &FenceCounters,
    attempt: &Attempt,
    seeded: Option<SeededFence>,
    sent: Moment,
    count: &FenceCount,
) -> bool {
    let Some(seeded) = seeded else {
        for slot in iter::once(&attempt.slot).chain(&count.others) {
            fences.seed(*slot, attempt.ttl, sent, count.token);
        }
        return false;
    };
    let is_lost = seeded.is_lost(count.token);
    if is_lost {
        fences.lose(boot_time());
    } else {
        fences.note(attempt.slot, count.token);
    }
    is_lost
}

fn read(
    [taken, counted]: [Value; 2],
    attempt: &Attempt,
    others: &[Slot],
) -> (RedisResult<Taken>, RedisResult<FenceCount>) {
    (Taken::from(&taken, attempt), script::counted(&counted, others))
}

enum Taken {
    Granted {
        /// The number of the permit; arbitrary for one lock.
        number: u8,
    },
    Busy,
    Done,
    /// A permit is free, but the queue comes first.
    InTurn,
}

impl Taken {
    fn from(reply: &Value, attempt: &Attempt) -> RedisResult<Self> {
        let Some(asker) = Asker::of(attempt) else {
            return command::locked(reply, attempt).map(|locked| match locked {
                Locked::Own => Self::Granted { number: 0 },
                Locked::Busy => Self::Busy,
                Locked::Done => Self::Done,
            });
        };
        Ok(match asker.taken(reply)? {
            Found::Permit(number) => Self::Granted { number },
            Found::NoneFree => Self::Busy,
            Found::InTurn => Self::InTurn,
        })
    }
}

fn granted_at(attempt: &Attempt, token: u64, number: u8) -> AcquireReply {
    granted(attempt, Reserved::single(token), permit(attempt, number))
}

/// The permit of the first sending counts: a repeated one may have found it.
fn granted(attempt: &Attempt, fence: Reserved, permit: Option<LockKey>) -> AcquireReply {
    let grant = Grant::answered(attempt, fence, attempt.sent_at().unwrap_or_default());
    AcquireReply::Granted(grant.of_permit(permit))
}

fn permit(attempt: &Attempt, number: u8) -> Option<LockKey> {
    Some(attempt.local_permit.as_ref()?.permits_key.member(number))
}

fn of_fence(connection: &Connection, error: &RedisError, attempt: &Attempt) -> Failed {
    let words = |fault| fault::of_fence(fault, &connection.names.namespace, &attempt.key);
    connection.failed(error).map(words)
}

/// Seeds, in its own request, a fence counter that was lost or not counted up. Returns the token of this grant, unless
/// the lock was lost before: others may have newer tokens.
///
/// See "What if a trusted fence counter was deleted?" in DESIGN.md.
async fn seed_alone(connection: &Connection, attempt: &Attempt) -> Result<Option<u64>, Failed> {
    let sent = boot_time();
    let ScriptCall { command, .. } = script::seed(&connection.names, attempt, &[]);
    let [seeded, locked] = connection.two([command, command::owner(attempt)]).await?;
    let token = command::integer(&seeded).map_err(|error| of_fence(connection, &error, attempt))?;
    connection.fences.seed(attempt.slot, attempt.ttl, sent, token);
    let is_own = command::is_own(&locked, attempt).map_err(|error| connection.failed(&error))?;
    Ok(is_own.then_some(token))
}
