//! The scripts, each with the types of its arguments and reply.

use std::mem;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, RedisError, RedisResult, ServerErrorKind, ToRedisArgs, Value};

use super::command::{integer, integers, millis, natural, unexpected};
use super::source::Script;
use crate::core::backend::{Attempt, Enqueued, Release, Remaining, Renewal, Renewed, Reserved};
use crate::core::naming::namespace::{Channels, Namespace};
use crate::core::types::key::LockKey;
use crate::core::types::options::FENCE_LIFE;
use crate::core::types::owner::{Held, LockValue, is_done};
use crate::core::types::slot::Slot;

/// The names in calls: of scripts, and of companion keys.
#[derive(Clone)]
pub(crate) struct Names {
    /// Whether scripts are called by their names in the server's cache.
    pub(crate) are_cached: bool,
    /// A bit for each script that the server does not know, whose next call contains its text.
    unknown: Arc<AtomicU16>,
    pub(crate) namespace: Namespace,
    channels: Channels,
}

impl Names {
    /// Calls scripts by name, but sends the text of those unknown by the reply to [`exist`].
    pub(crate) fn cached(namespace: Namespace, channels: Channels, exist: &Value) -> Self {
        let exist = Vec::<bool>::from_redis_value_ref(exist).unwrap_or_default();
        let is_unknown = |script: &Script| !exist.get(*script as usize).is_some_and(|is| *is);
        let unknown = Script::ALL.iter().filter(|script| is_unknown(script));
        let unknown = AtomicU16::new(unknown.map(|script| bit(*script)).sum());
        Self { unknown: unknown.into(), are_cached: true, namespace, channels }
    }

    pub(crate) fn uncached(namespace: Namespace, channels: Channels) -> Self {
        Self { unknown: Arc::default(), are_cached: false, namespace, channels }
    }

    pub(crate) fn within(&self, namespace: Namespace) -> Self {
        Self { namespace, ..self.clone() }
    }

    /// Notes that the server does not know a script, so perhaps none.
    pub(crate) fn are_unknown(&self) {
        self.unknown.store(u16::MAX, Ordering::Relaxed);
    }

    /// A call by the script's name or with its text, for that many keys, with capacity for the arguments.
    pub(crate) fn call(&self, script: Script, keys: usize, arguments: usize) -> Cmd {
        let is_unknown = self.becomes_known(script);
        let (verb, text) = if self.are_cached && !is_unknown {
            ("EVALSHA", script.name(self.channels))
        } else {
            ("EVAL", script.source(self.channels))
        };
        let count = keys + arguments;
        let mut command = Cmd::with_capacity(3 + count, text.len() + 56 * count + 32);
        command.arg(verb).arg(text).arg(keys);
        command
    }

    fn becomes_known(&self, script: Script) -> bool {
        let bit = bit(script);
        self.unknown.load(Ordering::Relaxed) != 0
            && self.unknown.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    fn about(&self, script: Script, key: &LockKey) -> Cmd {
        let mut command = self.call(script, 1, 3);
        command.arg(key.as_str());
        command
    }

    fn with_companions(&self, script: Script, attempt: &Attempt) -> Cmd {
        let (fence, queue) =
            (self.namespace.fence(attempt.slot), self.namespace.queue(&attempt.key));
        let mut command = self.call(script, 3, 5);
        command.arg(attempt.key.as_str()).arg(fence).arg(queue);
        command
    }
}

fn bit(script: Script) -> u16 {
    1 << script as u16
}

/// Asks which of the first scripts the server knows. More than ten words make it hang up on a user who is not logged
/// in.
pub(crate) fn exist(channels: Channels) -> Cmd {
    let mut exist = Cmd::new();
    exist.arg("SCRIPT").arg("EXISTS");
    add_all(&mut exist, Script::ALL.iter().take(8).map(|script| script.name(channels)));
    exist
}

pub(crate) struct ScriptCall<R> {
    pub(crate) command: Cmd,
    pub(crate) read: R,
}

pub(crate) trait Read<T>: FnOnce(Value) -> RedisResult<T> {}

impl<T, F: FnOnce(Value) -> RedisResult<T>> Read<T> for F {}

/// Ends the attempt's hold: hands the lock off to the first waiter, frees it, or leaves it taken for a minimum hold; an
/// attempt of this process may be queued with it.
pub(crate) fn release(
    names: &Names,
    attempt: &Attempt,
    taken_for: Option<Duration>,
    next: Option<&Attempt>,
) -> ScriptCall<impl Read<(Release, Option<Reserved>)> + use<>> {
    let mut command = names.with_companions(Script::Release, attempt);
    command.arg(attempt.owner.as_ref());
    if taken_for.is_some() || next.is_some() {
        command.arg(taken_for.map_or(0, millis));
    }
    if let Some(next) = next {
        command.arg(next.entry()).arg(next.owner.as_ref()).arg(millis(next.ttl.queue_life()));
        command.arg(millis(next.ttl.duration()));
    }
    let read = |reply: Value| {
        let reply = reply.extract_error()?;
        if let Ok(found) = found(&reply) {
            return Ok((found, None));
        }
        Ok((Release::Released, Some(reserved(integers(&reply)?)?)))
    };
    ScriptCall { command, read }
}

/// As a release, but of any owner bytes; the attempt's owner does not matter.
pub(crate) fn force(
    names: &Names,
    of: &Attempt,
    owner: &[u8],
) -> ScriptCall<impl Read<Release> + use<>> {
    let mut command = names.with_companions(Script::Release, of);
    command.arg(owner);
    ScriptCall { command, read: |reply: Value| found(&reply.extract_error()?) }
}

pub(super) fn reserved([first, time]: [i64; 2]) -> Result<Reserved, RedisError> {
    Ok(Reserved::at(natural(first)?, natural(time)?))
}

/// The outcome of a release that hands nothing to this process.
fn found(reply: &Value) -> RedisResult<Release> {
    match reply {
        Value::Int(1) => Ok(Release::Released),
        Value::Int(0) => Ok(Release::Absent),
        Value::Int(-1) => Ok(Release::Taken),
        _ => Err(unexpected()),
    }
}

/// Ends the attempt's hold by its lock alone, without the waiters.
pub(crate) fn free_one(
    names: &Names,
    attempt: &Attempt,
    taken_for: Option<Duration>,
) -> ScriptCall<impl Read<Release> + use<>> {
    let mut command = names.about(Script::FreeOne, &attempt.key);
    command.arg(attempt.owner.as_ref()).arg(taken_for.map_or(0, millis));
    ScriptCall { command, read: |reply: Value| found(&reply.extract_error()?) }
}

pub(crate) fn transfer(
    names: &Names,
    from: &Attempt,
    to: &Attempt,
) -> ScriptCall<impl Read<Renewed> + use<>> {
    let mut command = names.about(Script::Transfer, &from.key);
    command.arg(from.owner.as_ref()).arg(to.owner.as_ref()).arg(millis(to.ttl.duration()));
    ScriptCall { command, read: renewed }
}

/// Frees those of many locks that their attempts hold and that have no waiter; returns which are free now.
pub(crate) fn free_all(
    names: &Names,
    attempts: &[Arc<Attempt>],
) -> ScriptCall<impl Read<Vec<bool>> + use<>> {
    let count = attempts.len();
    let mut command = names.call(Script::FreeAll, 2 * count, count);
    add_all(&mut command, attempts.iter().map(|attempt| attempt.key.as_str()));
    add_all(&mut command, attempts.iter().map(|attempt| names.namespace.queue(&attempt.key)));
    add_all(&mut command, attempts.iter().map(|attempt| attempt.owner.as_ref()));
    let read = move |reply: Value| {
        let freed = Vec::<bool>::from_redis_value(reply.extract_error()?)?;
        if freed.len() == count { Ok(freed) } else { Err(unexpected()) }
    };
    ScriptCall { command, read }
}

fn add_all(command: &mut Cmd, arguments: impl Iterator<Item = impl ToRedisArgs>) {
    for argument in arguments {
        command.arg(argument);
    }
}

pub(crate) fn enqueue<'a>(
    names: &Names,
    attempt: &'a Attempt,
) -> ScriptCall<impl Read<Enqueued<Reserved>> + use<'a>> {
    let mut command = names.with_companions(Script::Enqueue, attempt);
    command.arg(attempt.owner.as_ref());
    add_place(&mut command, attempt);
    let read = |reply: Value| {
        let mut reply = reply.extract_error()?;
        if let Ok([1, first, time]) = integers(&reply) {
            return Ok(Enqueued::Granted(reserved([first, time])?));
        }
        let obstacle = obstacle_behind(&mut reply);
        let [0, millis] = integers(&reply)? else { return Err(unexpected()) };
        let remaining = remaining(millis);
        attempt.mark_busy(&obstacle, remaining);
        let remaining = or_endless(remaining);
        let is_done = is_done(&obstacle);
        Ok(if is_done { Enqueued::Done(remaining) } else { Enqueued::Queued(remaining) })
    };
    ScriptCall { command, read }
}

pub(super) fn add_place(command: &mut Cmd, attempt: &Attempt) {
    command.arg(millis(attempt.ttl.duration())).arg(attempt.entry());
    command.arg(millis(attempt.ttl.queue_life()));
    let fence_life = millis(attempt.ttl.fence_life());
    if fence_life > FENCE_LIFE {
        command.arg(fence_life);
    }
}

/// A negative number means no end.
pub(super) fn remaining(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

pub(super) fn or_endless(remaining: Option<Duration>) -> Remaining {
    remaining.map_or(Remaining::Endless, Remaining::Time)
}

/// Takes the value of a lock without a holder off the end of a busy reply; empty if there is none.
pub(super) fn obstacle_behind(reply: &mut Value) -> Vec<u8> {
    let Value::Array(parts) = reply else {
        return Vec::new();
    };
    match &mut parts[..] {
        [Value::Int(0), _, Value::BulkString(value)] => {
            let value = mem::take(value);
            parts.truncate(2);
            value
        }
        _ => Vec::new(),
    }
}

pub(crate) fn leave(names: &Names, attempt: &Attempt) -> ScriptCall<impl Read<()> + use<>> {
    let mut command = names.with_companions(Script::Leave, attempt);
    command.arg(attempt.owner.as_ref()).arg(attempt.entry());
    ScriptCall { command, read: |reply: Value| reply.extract_error().map(drop) }
}

/// The outcome for each lock; an error is of this lock only.
pub(crate) type Found = Vec<Result<Renewed, RedisError>>;

/// Extends locks that their attempts hold, and no others.
pub(crate) fn renew(names: &Names, renewals: &[Renewal]) -> ScriptCall<impl Read<Found> + use<>> {
    let count = renewals.len();
    let mut command = names.call(Script::Renew, count, 2 * count);
    add_all(&mut command, renewals.iter().map(|renewal| renewal.attempt.key.as_str()));
    for Renewal { attempt, ttl } in renewals {
        command.arg(attempt.owner.as_ref()).arg(ttl.map_or(0, |ttl| millis(ttl.duration())));
    }
    let read = move |reply| match reply {
        Value::Array(outcomes) if outcomes.len() == count => {
            Ok(outcomes.into_iter().map(renewed).collect())
        }
        Value::ServerError(error) => Err(error.into()),
        _ => Err(unexpected()),
    };
    ScriptCall { command, read }
}

/// As [`renew`], and if one of the locks is held, also writes something for `WAIT` to wait for.
pub(crate) fn confirm(names: &Names, renewals: &[Renewal]) -> ScriptCall<impl Read<Found> + use<>> {
    let ScriptCall { mut command, read } = renew(names, renewals);
    command.arg("write");
    ScriptCall { command, read }
}

/// As [`renew`], for one lock.
pub(crate) fn renew_one(
    names: &Names,
    renewal: &Renewal,
) -> ScriptCall<impl Read<Renewed> + use<>> {
    let ScriptCall { command, read } = renew(names, slice::from_ref(renewal));
    ScriptCall { command, read: |reply| read(reply)?.pop().unwrap_or_else(|| Err(unexpected())) }
}

fn renewed(outcome: Value) -> RedisResult<Renewed> {
    match outcome {
        Value::Int(1) => Ok(Renewed::Held),
        Value::Int(0) => Ok(Renewed::Absent),
        Value::Int(-1) => Ok(Renewed::Taken),
        Value::ServerError(error) => Err(error.into()),
        _ => Err(unexpected()),
    }
}

pub(crate) fn inspect(names: &Names, key: &LockKey) -> ScriptCall<impl Read<Option<Held>> + use<>> {
    let read = |reply: Value| {
        let Some((owner, remaining)) = Option::from_redis_value(reply.extract_error()?)? else {
            return Ok(None);
        };
        let owner = LockValue::new(Vec::from_redis_value(owner)?);
        let remaining = self::remaining(i64::from_redis_value(remaining)?);
        let remaining = remaining.map(|rest| owner.lasts(rest));
        Ok(Some(Held { owner, remaining }))
    };
    ScriptCall { command: names.about(Script::Inspect, key), read }
}

pub(crate) struct FenceCount {
    pub(crate) token: u64,
    /// The other slots whose counters have at least this count now.
    pub(crate) others: Vec<Slot>,
}

/// Counts up a lock's fence counter, and seeds it with the server's time if it is below; seeds those of other slots
/// with the same time, unless several servers may have them.
pub(crate) fn seed<'a>(
    names: &Names,
    attempt: &Attempt,
    others: &'a [Slot],
) -> ScriptCall<impl Read<FenceCount> + use<'a>> {
    let mut command = names.call(Script::Seed, 1 + others.len(), 1);
    command.arg(names.namespace.fence(attempt.slot));
    add_all(&mut command, others.iter().map(|slot| names.namespace.fence(*slot)));
    command.arg(millis(attempt.ttl.fence_life()));
    ScriptCall { command, read: |reply: Value| counted(&reply, others) }
}

/// A list has the numbers, from 1, of counters that were left alone.
pub(crate) fn counted(reply: &Value, others: &[Slot]) -> RedisResult<FenceCount> {
    let (token, left_alone) = match reply {
        Value::Array(list) => list.split_first().ok_or_else(unexpected)?,
        token => return Ok(FenceCount { token: integer(token)?, others: Vec::new() }),
    };
    let is_seeded = |number: &i64| !left_alone.contains(&Value::Int(*number));
    let seeded = (1..).zip(others).filter(|(number, _)| is_seeded(number)).map(|(_, slot)| *slot);
    Ok(FenceCount { token: integer(token)?, others: seeded.collect() })
}

pub(crate) fn mark(names: &Names, tried: &[Arc<Attempt>]) -> Cmd {
    let [first, ..] = tried else { return Cmd::new() };
    let mut command = names.call(Script::Mark, tried.len() + 2, 1);
    command.arg(first.key.as_str());
    add_all(&mut command, tried.iter().map(|attempt| names.namespace.fence(attempt.slot)));
    command.arg(names.namespace.queue(&first.key)).arg(millis(first.ttl.duration()));
    command
}

/// Whether nothing was done, because the server does not know the script's name.
pub(crate) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ServerErrorKind::NoScript.into()
}
