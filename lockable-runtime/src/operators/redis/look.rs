use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, RedisError, Value};

use super::call::fault;
use crate::core::backend::Fault;
use crate::core::naming::namespace::Namespace;
use crate::core::types::key::LockKey;
use crate::core::types::owner::LockValue;
use crate::core::types::slot::Slot;
use crate::operators::contract::Seen;
use crate::redis::fault;
use crate::redis::route::Router;
use crate::redis::wire::command::unexpected;

pub(super) async fn look(router: &Router, key: LockKey) -> Result<Option<Seen>, Fault> {
    let commands = commands(&router.topology.opener.namespace, &key, Extent::Whole);
    let mut looks = 0;
    loop {
        looks += 1;
        let replies = router.replies(Slot::of(&key), &commands).await?;
        let found = seen(key.clone(), &mut replies.into_iter());
        let found = found.map_err(|error| fault(&router.topology.opener, &error))?;
        if looks == MAX_LOOKS || !is_between(found.as_ref()) {
            return Ok(found);
        }
    }
}

/// Whether the lock seems to have been acquired between the commands: the first found no value.
pub(super) fn is_between(found: Option<&Seen>) -> bool {
    found.and_then(|seen| seen.owner.as_ref()).is_some_and(LockValue::is_empty)
}

/// The first answer that names another node.
pub(super) fn redirect(replies: &[Value]) -> Option<RedisError> {
    let errors = replies.iter().filter_map(|reply| match reply {
        Value::ServerError(error) => Some(RedisError::from(error.clone())),
        _ => None,
    });
    errors.into_iter().find(fault::is_redirect)
}

#[derive(Clone, Copy)]
pub(super) enum Extent {
    Whole,
    /// What has the prefix by chance may be of any length.
    Beginning,
}

pub(super) fn commands(namespace: &Namespace, key: &LockKey, extent: Extent) -> [Cmd; 3] {
    let mut value = Cmd::new();
    value.arg("GETRANGE").arg(key.as_str()).arg(0);
    match extent {
        Extent::Whole => value.arg(-1),
        Extent::Beginning => value.arg(LockValue::MAX_BYTES - 1),
    };
    let rest = Cmd::new().arg("PTTL").arg(key.as_str()).to_owned();
    let queued = Cmd::new().arg("LLEN").arg(namespace.queue(key)).to_owned();
    [value, rest, queued]
}

pub(super) fn seen(
    key: LockKey,
    replies: &mut impl Iterator<Item = Value>,
) -> Result<Option<Seen>, RedisError> {
    let mut reply = || replies.next().ok_or_else(unexpected);
    let value = reply()?;
    let rest = reply()?;
    let queued = reply()?;
    let owner = match value {
        Value::ServerError(error) if error.code() == "WRONGTYPE" => None,
        value => Some(LockValue::new(Vec::from_redis_value(value.extract_error()?)?)),
    };
    let rest = i64::from_redis_value(rest.extract_error()?)?;
    if rest == GONE {
        return Ok(None);
    }
    let rest = u64::try_from(rest).ok().map(Duration::from_millis);
    let remaining = rest.map(|rest| owner.as_ref().map_or(rest, |owner| owner.lasts(rest)));
    let queued = match queued {
        Value::ServerError(error) if error.code() == "WRONGTYPE" => 0,
        queued => usize::from_redis_value(queued.extract_error()?)?,
    };
    Ok(Some(Seen { key, owner, remaining, queued }))
}

/// How often a key without a value is read again: the value of another library's lock may be empty.
const MAX_LOOKS: u32 = 10;

const GONE: i64 = -2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_kept_for_waiters_is_listed_with_a_second_less() {
        let left = |mark: &str| {
            let value = format!("{mark}00000000000000ff-12").into_bytes();
            let replies = [Value::BulkString(value), Value::Int(2_500), Value::Int(1)];
            let seen = seen(LockKey::from_static("k"), &mut replies.into_iter()).unwrap().unwrap();
            seen.remaining.unwrap().as_millis()
        };
        assert_eq!(["", "~", "="].map(left), [2_500, 2_500, 1_500]);
    }
}
