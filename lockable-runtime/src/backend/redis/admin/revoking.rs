//! What an operator sends to a holder, through the server.

use std::sync::Arc;

use ::redis::{Cmd, FromRedisValue, Value};

use super::queue;
use crate::backend::redis::Redis;
use crate::backend::redis::pubsub::revocations;
use crate::backend::redis::route::{Ran, Request, sure};
use crate::backend::redis::wire::command::{integer, pipeline};
use crate::backend::redis::wire::connection::Connection;
use crate::backend::redis::wire::meaning::Failed;
use crate::backend::redis::wire::script;
use crate::backend::{
    Attempt, Audience, Backend, Environment, Fault, Release, Reply, Revocation, Revoking,
};
use crate::types::id::ProcessId;
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::owner::{LockValue, OwnerToken, TokenParts};
use crate::types::slot::Slot;

impl Revoking for Redis {
    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        let this = self.clone();
        Box::pin(async move {
            let Some(acquired) = TokenParts::parse(&revocation.owner) else {
                return Ok(Audience::Silence);
            };
            let channel = this.topology().opener.namespace.revocations(acquired.process);
            let text = revocations::written(&revocation);
            let slot = Slot::of(&revocation.key);
            let publish = Publish { channel: &channel, text: &text };
            let receivers = this.router.run(slot, &publish).await?.found;
            Ok(match receivers {
                0 if this.topology().slot_owners.are_shared() => Audience::Unknown,
                0 => Audience::Silence,
                _ => Audience::Listens,
            })
        })
    }

    fn advance(&self, key: LockKey, process: ProcessId) -> Reply<bool> {
        let this = self.clone();
        Box::pin(async move { queue::advance(&this.router, &key, process).await })
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        let attempt = |owner| Attempt::forced(key, Ttl::MIN, OwnerToken::received(owner));
        match str::from_utf8(&owner) {
            _ if owner.len() == LockValue::MAX_BYTES => {
                Box::pin(self.clone().force_long(attempt(""), owner))
            }
            Ok(text) => self.release(Arc::new(attempt(text))),
            // Another library may write any bytes.
            Err(_) => Box::pin(self.clone().force_bytes(attempt(""), owner)),
        }
    }
}

impl Redis {
    /// A listing has read no more than the beginning of the value.
    async fn force_long(self, of: Attempt, beginning: Vec<u8>) -> Result<Release, Fault> {
        match self.router.run(of.slot, &ReadValue(&of.key)).await?.found {
            Some(whole) if whole.starts_with(&beginning) => self.force_bytes(of, whole).await,
            Some(_) => Ok(Release::Taken),
            None => Ok(Release::Absent),
        }
    }

    async fn force_bytes(self, of: Attempt, owner: Vec<u8>) -> Result<Release, Fault> {
        let force = Forcing { of: &of, owner: &owner };
        let Ran { found, before, .. } = self.router.run(of.slot, &force).await?;
        sure(found, &before, self.name())
    }
}

/// A message to a process; what is found is how many have received it.
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

/// The whole value of a key.
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
