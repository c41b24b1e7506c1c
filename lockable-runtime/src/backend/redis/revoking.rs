//! What an operator sends to a holder, through the server.

use std::sync::{Arc, Weak};

use ::redis::{Cmd, FromRedisValue, Value};

use super::servers::{Ran, Servers};
use super::wait::revocations::{self, Revocations};
use super::wire::command::{integer, pipeline};
use super::wire::connection::Connection;
use super::wire::script::Force;
use super::{Redis, sure};
use crate::backend::{
    Attempt, Audience, Backend, Environment, Fault, Hearer, Release, Reply, Revocation, Revoking,
};
use crate::types::key::LockKey;
use crate::types::options::Ttl;
use crate::types::owner::{LockValue, TokenParts};
use crate::types::slot::Slot;
use crate::types::token::OwnerToken;

impl Revoking for Redis {
    fn when_revoked(&self, hearer: Weak<dyn Hearer>) {
        self.revocations().when_revoked(hearer);
    }

    fn send(&self, revocation: Revocation) -> Reply<Audience> {
        let this = self.clone();
        Box::pin(async move {
            let process =
                TokenParts::parse(&revocation.owner).and_then(|acquired| acquired.process);
            let Some(process) = process else { return Ok(Audience::Silence) };
            let channel = this.servers.opener().namespace.revocations(process);
            let text = revocations::written(&revocation);
            let slot = Slot::of(&revocation.key);
            let publish = async move |_: &Servers, connection: &Arc<Connection>| {
                let publish = Cmd::new().arg("PUBLISH").arg(&channel).arg(&text).to_owned();
                let count = Cmd::new().arg("PUBSUB").arg("NUMSUB").arg(&channel).to_owned();
                let [heard, counted] = connection.two([publish, count]).await?;
                let heard = integer(&heard).map_err(|error| connection.fault(&error))?;
                // Subscribers to a pattern hear it too. Without the right to count, they are taken for the process.
                let counted = <(String, u64)>::from_redis_value(counted);
                Ok(counted.map_or(heard, |(_, count)| count.min(heard)))
            };
            let heard = this.servers.run(slot, publish).await?.found;
            Ok(match (&this.servers, heard) {
                (Servers::One(_), 0) => Audience::Silence,
                // A node counts its own clients only.
                (Servers::Cluster(_), 0) => Audience::Unknown,
                (Servers::One(_) | Servers::Cluster(_), _) => Audience::Listens,
            })
        })
    }

    fn force(&self, key: LockKey, owner: Vec<u8>) -> Reply<Release> {
        let attempt = |owner| Attempt::owned(key, Ttl::MIN, OwnerToken::received(owner));
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
        let key = of.key.clone();
        let read = async move |_: &Servers, connection: &Arc<Connection>| {
            let get = Cmd::new().arg("GET").arg(key.as_str()).to_owned();
            let replies = connection.call(&pipeline([get])).await?;
            let value = replies.into_iter().next().unwrap_or(Value::Nil).extract_error();
            let value = value.and_then(|value| Ok(Option::<Vec<u8>>::from_redis_value(value)?));
            value.map_err(|error| connection.fault(&error))
        };
        match self.servers.run(of.slot, read).await?.found {
            Some(whole) if whole.starts_with(&beginning) => self.force_bytes(of, whole).await,
            Some(_) => Ok(Release::Taken),
            None => Ok(Release::Absent),
        }
    }

    async fn force_bytes(self, of: Attempt, owner: Vec<u8>) -> Result<Release, Fault> {
        let slot = of.slot;
        let force = async move |_: &Servers, connection: &Arc<Connection>| {
            connection.run(&Force { of: &of, owner: &owner }).await
        };
        let Ran { found, before } = self.servers.run(slot, force).await?;
        sure(found, &before, self.name())
    }

    pub(super) fn revocations(&self) -> &Revocations {
        match &self.servers {
            Servers::One(one) => &one.revocations,
            Servers::Cluster(cluster) => &cluster.revocations,
        }
    }
}
