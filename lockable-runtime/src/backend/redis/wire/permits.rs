//! The scripts of permits, with the names and types of what goes in and comes out.

use ::redis::{Cmd, RedisError, Value};

use super::command::{integer, integers, millis, natural, unexpected};
use super::script::{Call, QueueReply, obstacle_behind, reserved};
use super::source::Script;
use crate::backend::Attempt;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::options::FENCE_LIFE;
use crate::types::permit::Lane;

/// An attempt that wants any permit of its lane.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) lane: &'a Lane,
}

impl<'a> Asker<'a> {
    /// None where the attempt wants one lock.
    pub(crate) fn of(attempt: &'a Attempt) -> Option<Self> {
        Some(Self { attempt, lane: attempt.lane.as_deref()? })
    }

    /// With the keys of all permits, and `behind` other keys after them.
    fn command(self, verb: &str, text: &str, behind: u8) -> Cmd {
        let permits = usize::from(self.lane.permits);
        let key = self.attempt.key.as_str();
        let size = text.len() + (permits + 4) * (key.len() + 8) + 256;
        let mut command = Cmd::with_capacity(10 + permits, size);
        command.arg(verb).arg(text).arg(self.lane.permits + behind);
        for permit in self.lane.members() {
            command.arg(permit.as_str());
        }
        command
    }

    fn with_companions(self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = self.command(verb, text, 2);
        command.arg(namespace.fence(self.attempt.slot));
        command.arg(namespace.queue_of(&self.lane.family));
        command.arg(self.attempt.owner.as_ref());
        command
    }

    /// The number of a permit that the attempt may have, or zero.
    fn number(self, reply: u64) -> Result<u8, RedisError> {
        let number = u8::try_from(reply).ok().filter(|number| *number <= self.lane.permits);
        number.ok_or_else(unexpected)
    }
}

/// Acquires a permit where one is free and its queue is empty.
pub(crate) struct TakeOne<'a>(pub(crate) Asker<'a>);

/// What a request that does not wait has found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Permit(u8),
    NoneFree,
    /// One is free, and entries in the queue come before.
    InTurn,
}

impl Call for TakeOne<'_> {
    type Outcome = Found;
    const SCRIPT: Script = Script::TakeOne;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let Self(asker) = self;
        let mut command = asker.command(verb, text, 1);
        command.arg(namespace.queue_of(&asker.lane.family));
        command.arg(asker.attempt.owner.as_ref()).arg(millis(asker.attempt.ttl.duration()));
        command
    }

    fn outcome(&self, reply: Value) -> Result<Found, RedisError> {
        if let Value::BulkString(value) = &reply {
            self.0.attempt.mark_busy(value, None);
            return Ok(Found::NoneFree);
        }
        if reply == Value::Int(-1) {
            return Ok(Found::InTurn);
        }
        Ok(match self.0.number(integer(&reply)?)? {
            0 => Found::NoneFree,
            number => Found::Permit(number),
        })
    }
}

/// Acquires a permit whose turn has come to the attempt, or queues the attempt.
pub(crate) struct OneOf<'a>(pub(crate) Asker<'a>);

impl Call for OneOf<'_> {
    /// With the permit that was acquired.
    type Outcome = (QueueReply, Option<LockKey>);
    const SCRIPT: Script = Script::OneOf;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let attempt = self.0.attempt;
        let mut command = self.0.with_companions(namespace, verb, text);
        command.arg(millis(attempt.ttl.duration())).arg(attempt.entry());
        command.arg(millis(attempt.ttl.queue_life()));
        let fence_life = millis(attempt.ttl.fence_life());
        if fence_life > FENCE_LIFE {
            command.arg(fence_life);
        }
        command
    }

    fn outcome(&self, reply: Value) -> Result<Self::Outcome, RedisError> {
        let mut reply = reply.extract_error()?;
        if let Ok([number, first, time]) = integers(&reply) {
            let permit = self.0.lane.family.member(self.0.number(natural(number)?)?);
            return Ok((QueueReply::Granted { fence: reserved([first, time])? }, Some(permit)));
        }
        self.0.attempt.mark_busy(&obstacle_behind(&mut reply), None);
        let [0, kept_for] = integers(&reply)? else { return Err(unexpected()) };
        Ok((QueueReply::remaining(kept_for), None))
    }
}

/// Takes the attempt out of the queue, and ends its hold of a permit.
pub(crate) struct LeaveAll<'a>(pub(crate) Asker<'a>);

impl Call for LeaveAll<'_> {
    /// Whether it had a permit.
    type Outcome = bool;
    const SCRIPT: Script = Script::OneOf;

    fn command(&self, namespace: &Namespace, verb: &str, text: &str) -> Cmd {
        let mut command = self.0.with_companions(namespace, verb, text);
        command.arg(0).arg(self.0.attempt.entry());
        command
    }

    fn outcome(&self, reply: Value) -> Result<bool, RedisError> {
        match reply.extract_error()? {
            Value::Int(had) => Ok(had == 1),
            _ => Err(unexpected()),
        }
    }
}
