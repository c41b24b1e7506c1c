//! What an operator sends to a holder, through the server.

use std::sync::Arc;

use ::redis::{Cmd, FromRedisValue, Value};

use crate::core::backend::{Attempt, Backend, Environment, Fault, Release, Reply, Revocation};
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::{LockValue, OwnerToken, TokenParts};
use crate::core::types::slot::Slot;
use crate::operators::contract::Audience;
use crate::redis::Redis;
use crate::redis::pubsub::revocations;
use crate::redis::route::{Ran, Request, sure};
use crate::redis::wire::command::{integer, pipeline};
use crate::redis::wire::connection::Connection;
use crate::redis::wire::meaning::Failed;
use crate::redis::wire::script;

pub(super) async fn send(redis: Redis, revocation: Revocation) -> Result<Audience, Fault> {
    let Some(acquired) = TokenParts::parse(&revocation.owner) else {
        return Ok(Audience::Silence);
    };
    let channel = redis.topology().opener.namespace.revocations(acquired.process);
    let text = revocations::written(&revocation);
    let slot = Slot::of(&revocation.key);
    let publish = Publish { channel: &channel, text: &text };
    let receivers = redis.router.run(slot, &publish).await?.found;
    Ok(match receivers {
        0 if redis.topology().slot_owners.are_shared() => Audience::Unknown,
        0 => Audience::Silence,
        _ => Audience::Listens,
    })
}

pub(super) fn force(redis: &Redis, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
    let attempt = |owner| Attempt::forced(key, Ttl::MIN, OwnerToken::received(owner));
    match str::from_utf8(&owner) {
        _ if owner.len() == LockValue::MAX_BYTES => {
            Box::pin(force_long(redis.clone(), attempt(""), owner))
        }
        Ok(text) => redis.release(Arc::new(attempt(text))),
        // Another library may write any bytes.
        Err(_) => Box::pin(force_bytes(redis.clone(), attempt(""), owner)),
    }
}

/// For a value of which a listing has read only the beginning.
async fn force_long(redis: Redis, of: Attempt, beginning: Vec<u8>) -> Result<Release, Fault> {
    match redis.router.run(of.slot, &ReadValue(&of.key)).await?.found {
        Some(whole) if whole.starts_with(&beginning) => force_bytes(redis, of, whole).await,
        Some(_) => Ok(Release::Taken),
        None => Ok(Release::Absent),
    }
}

async fn force_bytes(redis: Redis, of: Attempt, owner: Vec<u8>) -> Result<Release, Fault> {
    let force = Forcing { of: &of, owner: &owner };
    let Ran { found, before, .. } = redis.router.run(of.slot, &force).await?;
    sure(found, &before, redis.name())
}

/// A message to a process; finds how many have received it.
struct Publish<'a> {
    channel: &'a str,
    text: &'a str,
}

impl Request for Publish<'_> {
    type Found = u64;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<u64, Failed> {
        let publish = Cmd::new().arg("PUBLISH").arg(self.channel).arg(self.text).to_owned();
        let count = Cmd::new().arg("PUBSUB").arg("NUMSUB").arg(self.channel).to_owned();
        let [receivers, counted] = connection.two([publish, count]).await?;
        let receivers = integer(&receivers).map_err(|error| connection.failed(&error))?;
        // Subscribers to a pattern receive it too. Without the right to count, they are taken for the process.
        let counted = <(String, u64)>::from_redis_value(counted);
        Ok(counted.map_or(receivers, |(_, count)| count.min(receivers)))
    }
}

struct ReadValue<'a>(&'a LockKey);

impl Request for ReadValue<'_> {
    type Found = Option<Vec<u8>>;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Self::Found, Failed> {
        let get = Cmd::new().arg("GET").arg(self.0.as_str()).to_owned();
        let replies = connection.call(&pipeline([get])).await?;
        let value = replies.into_iter().next().unwrap_or(Value::Nil).extract_error();
        let value = value.and_then(|value| Ok(Option::<Vec<u8>>::from_redis_value(value)?));
        value.map_err(|error| connection.failed(&error))
    }
}

struct Forcing<'a> {
    of: &'a Attempt,
    owner: &'a [u8],
}

impl Request for Forcing<'_> {
    type Found = Release;

    async fn send(&self, connection: &Arc<Connection>, _: bool) -> Result<Release, Failed> {
        connection.run(script::force(&connection.names, self.of, self.owner)).await
    }
}
