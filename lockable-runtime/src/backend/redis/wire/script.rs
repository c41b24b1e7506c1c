//! The scripts, each with the names and types of what goes in and comes out.

use std::mem;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, RedisError, ServerErrorKind, Value};

use super::command::{integer, integers, millis, natural, unexpected};
use super::source::Script;
use crate::backend::{self, Attempt, Renewal, Renewed, Reserved};
use crate::types::key::LockKey;
use crate::types::namespace::{Channels, Namespace};
use crate::types::options::FENCE_LIFE;
use crate::types::owner::{Held, LockValue};
use crate::types::slot::Slot;
use crate::types::token::Origin;

/// The names that a call is written with: of the script, and of the companion keys.
#[derive(Clone)]
pub(crate) struct Names {
    /// What a server calls the scripts in its cache; nothing for those that it may not be asked to cache.
    scripts: [Option<String>; Script::ALL.len()],
    pub(crate) namespace: Namespace,
    channels: Channels,
}

impl Names {
    /// From the answers to `SCRIPT LOAD` of all scripts that are needed, in their order.
    pub(crate) fn from_replies(
        namespace: Namespace,
        channels: Channels,
        replies: impl IntoIterator<Item = Value>,
    ) -> Self {
        let mut replies = replies.into_iter();
        let scripts = Script::ALL.map(|_| String::from_redis_value(replies.next()?).ok());
        Self { scripts, namespace, channels }
    }

    /// Where no script is known by a name.
    pub(crate) fn uncached(namespace: Namespace, channels: Channels) -> Self {
        Self { scripts: Script::ALL.map(|_| None), namespace, channels }
    }

    /// The same scripts with the companion keys of a trial.
    pub(crate) fn of_trial(&self, origin: Origin) -> Self {
        Self { namespace: self.namespace.of_trial(origin), ..self.clone() }
    }

    /// Whether the server caches all scripts that are needed.
    pub(crate) fn are_cached(&self) -> bool {
        let cached = self.scripts.iter().filter(|name| name.is_some()).count();
        cached == Script::needed(self.channels).count()
    }

    /// The call by the script's name, or else with its text.
    pub(crate) fn command<C: Call>(&self, call: &C) -> Cmd {
        match self.scripts.get(C::SCRIPT as usize) {
            Some(Some(name)) => call.command(&self.namespace, "EVALSHA", name),
            Some(None) | None => self.by_text(call),
        }
    }

    /// The call with the script's text.
    pub(crate) fn by_text<C: Call>(&self, call: &C) -> Cmd {
        call.command(&self.namespace, "EVAL", C::SCRIPT.source(self.channels))
    }
}

/// One call of a script.
pub(crate) trait Call {
    type Outcome;
    const SCRIPT: Script;

    /// `EVALSHA` with the script's name, or `EVAL` with its text.
    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd;

    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError>;
}

/// Ends the hold of `attempt`: the lock is handed off to the first waiter, or is free.
pub(crate) struct Release<'a> {
    pub(crate) attempt: &'a Attempt,
    /// How long the lock has to stay taken.
    pub(crate) taken_for: Option<Duration>,
    /// An attempt of this process that is queued with it.
    pub(crate) next: Option<&'a Attempt>,
}

impl Call for Release<'_> {
    /// With the fencing tokens of the next attempt, where that has the lock at once.
    type Outcome = (backend::Release, Option<Reserved>);
    const SCRIPT: Script = Script::Release;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = with_keys(namespace, verb, text, self.attempt, 6);
        command.arg(self.attempt.owner.as_ref());
        if self.taken_for.is_some() || self.next.is_some() {
            command.arg(self.taken_for.map_or(0, millis));
        }
        if let Some(next) = self.next {
            command.arg(next.entry()).arg(next.owner.as_ref()).arg(millis(next.ttl.queue_life()));
            command.arg(millis(next.ttl.duration()));
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError> {
        let reply = reply.extract_error()?;
        if let Some(found) = found(&reply) {
            return Ok((found, None));
        }
        Ok((backend::Release::Released, Some(reserved(integers(&reply)?)?)))
    }
}

/// Ends a hold whose owner is any bytes, as a release does.
pub(crate) struct Force<'a> {
    /// Whose owner counts for nothing.
    pub(crate) of: &'a Attempt,
    pub(crate) owner: &'a [u8],
}

impl Call for Force<'_> {
    type Outcome = backend::Release;
    const SCRIPT: Script = Script::Release;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = with_keys(namespace, verb, text, self.of, 1);
        command.arg(self.owner);
        command
    }

    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError> {
        found(&reply.extract_error()?).ok_or_else(unexpected)
    }
}

/// What a script has reserved: the first token, and the time.
pub(super) fn reserved([first, time]: [i64; 2]) -> Result<Reserved, RedisError> {
    Ok(Reserved::at(natural(first)?, natural(time)?))
}

/// What a release found that hands nothing to this process.
fn found(reply: &Value) -> Option<backend::Release> {
    match reply {
        Value::Int(1) => Some(backend::Release::Released),
        Value::Int(0) => Some(backend::Release::Absent),
        Value::Int(-1) => Some(backend::Release::Taken),
        _ => None,
    }
}

/// Ends the hold of `attempt` by its lock alone, without regard to the waiters.
pub(crate) struct FreeOne<'a> {
    pub(crate) attempt: &'a Attempt,
    /// How long the lock has to stay taken.
    pub(crate) taken_for: Option<Duration>,
}

impl Call for FreeOne<'_> {
    type Outcome = backend::Release;
    const SCRIPT: Script = Script::FreeOne;

    fn command(&self, _: &Namespace, verb: &str, text: &str) -> Cmd {
        let key = self.attempt.key.as_str();
        let mut command = Cmd::with_capacity(6, text.len() + key.len() + 96);
        command.arg(verb).arg(text).arg(1).arg(key).arg(self.attempt.owner.as_ref());
        if let Some(taken_for) = self.taken_for {
            command.arg(millis(taken_for));
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<backend::Release, RedisError> {
        found(&reply.extract_error()?).ok_or_else(unexpected)
    }
}

/// Gives a lock from one owner token to another.
pub(crate) struct Transfer<'a> {
    pub(crate) from: &'a Attempt,
    pub(crate) to: &'a Attempt,
}

impl Call for Transfer<'_> {
    type Outcome = Renewed;
    const SCRIPT: Script = Script::Transfer;

    fn command(&self, _: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = Cmd::new();
        command.arg(verb).arg(text).arg(1).arg(self.from.key.as_str());
        command.arg(self.from.owner.as_ref()).arg(self.to.owner.as_ref());
        command.arg(millis(self.to.ttl.duration()));
        command
    }

    fn outcome(&self, reply: Value) -> Result<Renewed, RedisError> {
        renewed(reply)
    }
}

/// Frees those of many locks that their attempts hold and that have no waiter.
pub(crate) struct FreeAll<'a>(pub(crate) &'a [Arc<Attempt>]);

impl Call for FreeAll<'_> {
    /// Whether each of them is free now; the others were left as they are.
    type Outcome = Vec<bool>;
    const SCRIPT: Script = Script::FreeAll;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let count = self.0.len();
        let mut command = Cmd::with_capacity(3 + 3 * count, text.len() + 160 * count + 32);
        command.arg(verb).arg(text).arg(2 * count);
        for attempt in self.0 {
            command.arg(attempt.key.as_str());
        }
        for attempt in self.0 {
            command.arg(namespace.queue(&attempt.key));
        }
        for attempt in self.0 {
            command.arg(attempt.owner.as_ref());
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<Vec<bool>, RedisError> {
        let freed = Vec::<bool>::from_redis_value(reply.extract_error()?)?;
        if freed.len() == self.0.len() { Ok(freed) } else { Err(unexpected()) }
    }
}

/// Acquires a lock whose turn has come to the attempt, or queues the attempt.
pub(crate) struct Enqueue<'a>(pub(crate) &'a Attempt);

/// The result of asking for a place.
pub(crate) enum QueueReply {
    Granted { fence: Reserved },
    Queued { remaining: Option<Duration> },
    Done { remaining: Option<Duration> },
}

impl QueueReply {
    /// Queued behind what lasts for so many milliseconds; a negative number is without an end.
    pub(super) fn remaining(millis: i64) -> Self {
        Self::Queued { remaining: u64::try_from(millis).ok().map(Duration::from_millis) }
    }
}

impl Call for Enqueue<'_> {
    type Outcome = QueueReply;
    const SCRIPT: Script = Script::Enqueue;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let Self(attempt) = self;
        let mut command = with_keys(namespace, verb, text, attempt, 4);
        command.arg(attempt.owner.as_ref()).arg(millis(attempt.ttl.duration()));
        command.arg(attempt.entry()).arg(millis(attempt.ttl.queue_life()));
        let fence_life = millis(attempt.ttl.fence_life());
        if fence_life > FENCE_LIFE {
            command.arg(fence_life);
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<QueueReply, RedisError> {
        let mut reply = reply.extract_error()?;
        if let Ok([1, first, time]) = integers(&reply) {
            return Ok(QueueReply::Granted { fence: reserved([first, time])? });
        }
        let obstacle = obstacle_behind(&mut reply);
        let [outcome, millis] = integers(&reply)?;
        let remaining = u64::try_from(millis).ok().map(Duration::from_millis);
        self.0.mark_busy(&obstacle, remaining);
        match outcome {
            0 => Ok(QueueReply::Queued { remaining }),
            2 => Ok(QueueReply::Done { remaining }),
            _ => Err(unexpected()),
        }
    }
}

/// Takes the value of a lock that no holder has off the end of a reply that is no grant; empty where there is none.
pub(super) fn obstacle_behind(reply: &mut Value) -> Vec<u8> {
    let Value::Array(parts) = reply else {
        return Vec::new();
    };
    match &mut parts[..] {
        [Value::Int(0 | 2), _, Value::BulkString(value)] => {
            let value = mem::take(value);
            parts.truncate(2);
            value
        }
        _ => Vec::new(),
    }
}

/// Takes an attempt out of the queue.
pub(crate) struct Leave<'a>(pub(crate) &'a Attempt);

impl Call for Leave<'_> {
    type Outcome = ();
    const SCRIPT: Script = Script::Leave;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let Self(attempt) = self;
        let mut command = with_keys(namespace, verb, text, attempt, 2);
        command.arg(attempt.owner.as_ref()).arg(attempt.entry());
        command
    }

    fn outcome(&self, reply: Value) -> Result<(), RedisError> {
        reply.extract_error().map(drop)
    }
}

/// A call about one lock, with its fence counter and its queue, and capacity for some arguments.
fn with_keys(
    namespace: &Namespace,
    verb: &str,
    text: &str,
    attempt: &Attempt,
    arguments: usize,
) -> Cmd {
    let fence = namespace.fence(attempt.slot);
    let queue = namespace.queue(&attempt.key);
    let key = attempt.key.as_str();
    let size = text.len() + 3 * key.len() + 3 * attempt.owner.as_ref().len() + 112;
    let mut command = Cmd::with_capacity(6 + arguments, size);
    command.arg(verb).arg(text).arg(3).arg(key).arg(fence).arg(queue);
    command
}

/// Extends locks that their attempts hold, and no others.
pub(crate) struct Renew<'a>(pub(crate) &'a [Renewal]);

impl Call for Renew<'_> {
    /// An error is one of this lock only.
    type Outcome = Vec<Result<Renewed, RedisError>>;
    const SCRIPT: Script = Script::Renew;

    fn command(&self, _: &Namespace, verb: &str, text: &str) -> Cmd {
        let count = self.0.len();
        let mut command = Cmd::with_capacity(3 + 3 * count, text.len() + 112 * count + 32);
        command.arg(verb).arg(text).arg(count);
        for renewal in self.0 {
            command.arg(renewal.attempt.key.as_str());
        }
        for Renewal { attempt, ttl } in self.0 {
            let millis = ttl.map_or(0, |ttl| millis(ttl.duration()));
            command.arg(attempt.owner.as_ref()).arg(millis);
        }
        command
    }

    /// As many outcomes as there were renewals.
    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError> {
        let outcomes = match reply {
            Value::Array(outcomes) if outcomes.len() == self.0.len() => outcomes,
            Value::ServerError(error) => return Err(error.into()),
            _ => return Err(unexpected()),
        };
        Ok(outcomes.into_iter().map(renewed).collect())
    }
}

/// The same; and where one of them is held, a write for which `WAIT` can wait.
pub(crate) struct Confirm<'a>(pub(crate) &'a [Renewal]);

impl Call for Confirm<'_> {
    type Outcome = Vec<Result<Renewed, RedisError>>;
    const SCRIPT: Script = Script::Renew;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = Renew(self.0).command(namespace, verb, text);
        command.arg("write");
        command
    }

    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError> {
        Renew(self.0).outcome(reply)
    }
}

fn renewed(outcome: Value) -> Result<Renewed, RedisError> {
    match outcome {
        Value::Int(1) => Ok(Renewed::Held),
        Value::Int(0) => Ok(Renewed::Absent),
        Value::Int(-1) => Ok(Renewed::Taken),
        Value::ServerError(error) => Err(error.into()),
        _ => Err(unexpected()),
    }
}

/// Extends one lock.
pub(crate) struct RenewOne<'a>(pub(crate) &'a Renewal);

impl Call for RenewOne<'_> {
    type Outcome = Renewed;
    const SCRIPT: Script = Script::Renew;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        Renew(slice::from_ref(self.0)).command(namespace, verb, text)
    }

    fn outcome(&self, reply: Value) -> Result<Renewed, RedisError> {
        let only = Renew(slice::from_ref(self.0)).outcome(reply)?.into_iter().next();
        only.ok_or_else(unexpected)?
    }
}

/// Reads who has a lock.
pub(crate) struct Inspect<'a>(pub(crate) &'a LockKey);

impl Call for Inspect<'_> {
    type Outcome = Option<Held>;
    const SCRIPT: Script = Script::Inspect;

    fn command(&self, _: &Namespace, verb: &str, text: &str) -> Cmd {
        let key = self.0.as_str();
        let mut command = Cmd::with_capacity(4, text.len() + key.len() + 16);
        command.arg(verb).arg(text).arg(1).arg(key);
        command
    }

    fn outcome(&self, reply: Value) -> Result<Option<Held>, RedisError> {
        let Some((owner, remaining)) = Option::from_redis_value(reply.extract_error()?)? else {
            return Ok(None);
        };
        let owner = LockValue::new(Vec::from_redis_value(owner)?);
        let remaining = u64::try_from(i64::from_redis_value(remaining)?).ok();
        let remaining = remaining.map(|rest| owner.lasts(Duration::from_millis(rest)));
        Ok(Some(Held { owner, remaining }))
    }
}

/// Counts up the fence counter of a lock, and seeds it with the server's time where it is below that; seeds those of
/// other slots with the same time.
pub(crate) struct Seed<'a> {
    pub(crate) attempt: &'a Attempt,
    /// None where keys of several slots may be on several servers.
    pub(crate) others: &'a [Slot],
}

/// What a fence counter has come to.
pub(crate) struct Counted {
    pub(crate) token: u64,
    /// The other slots whose counters have at least the same count now.
    pub(crate) others: Vec<Slot>,
}

impl<'a> Seed<'a> {
    pub(crate) fn alone(attempt: &'a Attempt) -> Self {
        Self { attempt, others: &[] }
    }

    /// The other slots but for those whose numbers, from 1, are in the reply.
    fn without(&self, left_alone: &[Value]) -> Vec<Slot> {
        let is_seeded = |number: &i64| !left_alone.contains(&Value::Int(*number));
        let numbered = (1..).zip(self.others);
        numbered.filter(|(number, _)| is_seeded(number)).map(|(_, slot)| *slot).collect()
    }
}

impl Call for Seed<'_> {
    type Outcome = Counted;
    const SCRIPT: Script = Script::Seed;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let Self { attempt, others } = self;
        let fences = 1 + others.len();
        let size = text.len() + fences * (namespace.as_str().len() + 16) + 64;
        let mut command = Cmd::with_capacity(4 + fences, size);
        command.arg(verb).arg(text).arg(fences).arg(namespace.fence(attempt.slot));
        for slot in *others {
            command.arg(namespace.fence(*slot));
        }
        command.arg(millis(attempt.ttl.fence_life()));
        command
    }

    fn outcome(&self, reply: Value) -> Result<Counted, RedisError> {
        let (token, others) = match &reply {
            Value::Array(list) => match list.as_slice() {
                [token, left_alone @ ..] => (token, self.without(left_alone)),
                [] => (&reply, Vec::new()),
            },
            token => (token, Vec::new()),
        };
        Ok(Counted { token: integer(token)?, others })
    }
}

/// Looks whether a script finds what commands have written at the fence counters of trials.
pub(crate) struct Meet<'a>(pub(crate) &'a [Arc<Attempt>]);

impl Call for Meet<'_> {
    type Outcome = bool;
    const SCRIPT: Script = Script::Meet;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = Cmd::new();
        let Self([first, ..]) = self else { return command };
        command.arg(verb).arg(text).arg(self.0.len() + 2).arg(first.key.as_str());
        for attempt in self.0 {
            command.arg(namespace.fence(attempt.slot));
        }
        command.arg(namespace.queue(&first.key));
        for attempt in self.0 {
            command.arg(attempt.owner.as_ref());
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<bool, RedisError> {
        integer(&reply).map(|count| count == 1)
    }
}

/// Whether nothing was done, because the server does not know a script by its name.
pub(crate) fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}
