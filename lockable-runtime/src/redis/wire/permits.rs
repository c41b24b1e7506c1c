//! The scripts of permits, with the types of their arguments and replies.

use ::redis::{Cmd, RedisResult, Value};

use super::command::{integer, integers, millis, natural, unexpected};
use super::script::{
    Names, Read, ScriptCall, add_place, obstacle_behind, or_endless, remaining, reserved,
};
use super::source::Script;
use crate::core::backend::{Attempt, Enqueued, Reserved};
use crate::core::types::key::LockKey;
use crate::core::types::permit::LocalPermit;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Permit(u8),
    NoneFree,
    /// One is free, but the queue comes first.
    InTurn,
}

#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) attempt: &'a Attempt,
    pub(crate) local_permit: &'a LocalPermit,
}

impl<'a> Asker<'a> {
    pub(crate) fn of(attempt: &'a Attempt) -> Option<Self> {
        Some(Self { attempt, local_permit: attempt.local_permit.as_deref()? })
    }

    /// With the keys of all permits, followed by `behind` other keys.
    fn call(self, names: &Names, script: Script, behind: usize) -> Cmd {
        let mut command = names.call(script, usize::from(self.local_permit.permits) + behind, 5);
        for permit in self.local_permit.members() {
            command.arg(permit.as_str());
        }
        command
    }

    fn one_of(self, names: &Names) -> Cmd {
        let mut command = self.call(names, Script::OneOf, 2);
        command.arg(names.namespace.fence(self.attempt.slot));
        command.arg(names.namespace.queue_of(&self.local_permit.permits_key));
        command.arg(self.attempt.owner.as_ref());
        command
    }

    /// The number of a permit that the attempt may have, or zero.
    fn number(self, reply: u64) -> RedisResult<u8> {
        let number = u8::try_from(reply).ok().filter(|number| *number <= self.local_permit.permits);
        number.ok_or_else(unexpected)
    }

    /// Acquires a permit if one is free and the queue is empty.
    pub(crate) fn take(self, names: &Names) -> ScriptCall<impl Read<Found> + use<'a>> {
        let mut command = self.call(names, Script::TakeOne, 1);
        command.arg(names.namespace.queue_of(&self.local_permit.permits_key));
        command.arg(self.attempt.owner.as_ref()).arg(millis(self.attempt.ttl.duration()));
        ScriptCall { command, read: move |reply: Value| self.taken(&reply) }
    }

    pub(crate) fn taken(self, reply: &Value) -> RedisResult<Found> {
        if let Value::BulkString(value) = reply {
            self.attempt.mark_busy(value, None);
            return Ok(Found::NoneFree);
        }
        if reply == &Value::Int(-1) {
            return Ok(Found::InTurn);
        }
        Ok(match self.number(integer(reply)?)? {
            0 => Found::NoneFree,
            number => Found::Permit(number),
        })
    }

    /// Acquires a permit if the attempt's turn has come, or queues the attempt.
    pub(crate) fn enqueue(
        self,
        names: &Names,
    ) -> ScriptCall<impl Read<(Enqueued<Reserved>, Option<LockKey>)> + use<'a>> {
        let mut command = self.one_of(names);
        add_place(&mut command, self.attempt);
        let read = move |reply: Value| {
            let mut reply = reply.extract_error()?;
            if let Ok([number @ 1..=i64::MAX, first, time]) = integers(&reply) {
                let permit = self.local_permit.permits_key.member(self.number(natural(number)?)?);
                return Ok((Enqueued::Granted(reserved([first, time])?), Some(permit)));
            }
            self.attempt.mark_busy(&obstacle_behind(&mut reply), None);
            let [0, kept_for] = integers(&reply)? else { return Err(unexpected()) };
            Ok((Enqueued::Queued(or_endless(remaining(kept_for))), None))
        };
        ScriptCall { command, read }
    }

    /// Takes the attempt out of the queue, and returns a permit that it was granted; says whether there was one.
    pub(crate) fn leave(self, names: &Names) -> ScriptCall<impl Read<bool> + use<>> {
        let mut command = self.one_of(names);
        command.arg(0).arg(self.attempt.entry());
        let read = |reply: Value| match reply.extract_error()? {
            Value::Int(had) => Ok(had == 1),
            _ => Err(unexpected()),
        };
        ScriptCall { command, read }
    }
}
