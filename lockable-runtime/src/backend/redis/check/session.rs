//! A connection of the check's own, and the lock that everything is done with.

use std::future::Future;

use ::redis::{Pipeline, RedisResult, Value};

use super::failures;
use crate::backend::redis::connect::driven::Driven;
use crate::backend::redis::connect::opener::{Opener, Target};
use crate::backend::redis::connect::shards::Shard;
use crate::backend::redis::wire::greeting::{Introduced, elsewhere, instead, introduce};
use crate::backend::redis::wire::script::Names;
use crate::check::Finding;
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::owner::Origin;
use crate::types::slot::Slot;
use crate::types::tag::tag;

/// The lock that the check does everything with.
pub(super) struct Probe {
    pub(super) key: LockKey,
    /// Another one, for commands one by one: they may leave it taken for a moment.
    pub(super) tried: LockKey,
    /// The process that its waiters claim to be of.
    pub(super) origin: Origin,
    pub(super) prefix: String,
    /// Of the locker's own, where its lockers' companion keys are.
    pub(super) namespace: Namespace,
    /// Those of the probe's companion keys are of a trial.
    pub(super) names: Names,
}

impl Probe {
    /// In a slot of the shard, where there is one; `None` where the prefix puts all locks into the slot of another.
    pub(super) fn new(
        prefix: &str,
        names: &Names,
        shard: Option<&Shard>,
    ) -> Result<Option<Self>, LockError> {
        let prefix = prefix.to_owned();
        let namespace = names.namespace.clone();
        let origin = Origin::draw()?;
        let names = names.of_trial(origin);
        // The last one, because slots are often moved from the first one on.
        let slot = shard.and_then(|shard| shard.slots().last());
        let tag = slot.map(|slot| format!(":{{{}}}", tag(slot))).unwrap_or_default();
        let key = LockKey::prefixed(&prefix, &format!("{}{tag}", names.namespace))?;
        let tried = LockKey::prefixed(&prefix, &format!("{}:tried{tag}", names.namespace))?;
        let is_there = shard.is_none_or(|shard| shard.has(Slot::of(&key)));
        Ok(is_there.then_some(Self { key, tried, origin, prefix, namespace, names }))
    }
}

/// A connection to a server that is being checked.
pub(super) struct Session<'a> {
    pub(super) opener: &'a Opener,
    pub(super) target: Target,
    pub(super) driven: Driven,
}

impl<'a> Session<'a> {
    /// Where a connection leads that is opened now.
    pub(super) async fn target(opener: &Opener) -> Result<Target, Finding> {
        let login = opener.login().await.map_err(|fault| failures::credentials(&fault))?;
        let target = opener.connecting(opener.target(&login)).await;
        target.map_err(|fault| failures::fault(&fault))
    }

    pub(super) async fn connect(opener: &'a Opener, target: Target) -> Result<Self, Finding> {
        let limit = opener.connect_deadline;
        match opener.within(limit, Driven::open(&target.client)).await {
            Some(Ok(driven)) => Ok(Self { opener, target, driven }),
            Some(Err(error)) => {
                let sentinel = opener.within(limit, instead(&target, &error)).await;
                Err(sentinel.flatten().unwrap_or_else(|| failures::connection(&error, &target)))
            }
            None => {
                let message = format!("could not connect within {limit:?}");
                Err(failures::unreachable(message, &target))
            }
        }
    }

    pub(super) async fn greet(&self) -> Result<Introduced, Finding> {
        let mut commands = self.driven.commands.clone();
        let introduced = self.answer(introduce(&mut commands, self.opener, false)).await?;
        match introduced.hello.clone().extract_error() {
            // It refuses everything else too.
            Err(error) if error.code() == Some("NOAUTH") => {
                Err(failures::connection(&error, &self.target))
            }
            _ => Ok(introduced),
        }
    }

    /// What is there instead of a server for locks.
    pub(super) async fn elsewhere(&self, hello: &Value) -> Result<Option<Finding>, Finding> {
        let mut commands = self.driven.commands.clone();
        self.answer(elsewhere(&mut commands, hello, &self.target)).await
    }

    /// Sends the commands in one go; an error of the server's is one of the values.
    pub(super) async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Finding> {
        let mut commands = self.driven.commands.clone();
        self.answer(commands.send_packed_commands(pipeline, 0, pipeline.len())).await
    }

    async fn answer<T>(&self, reply: impl Future<Output = RedisResult<T>>) -> Result<T, Finding> {
        let limit = self.opener.command_deadline;
        let answer = self.opener.within(limit, reply).await;
        let silence = || failures::silence(format!("no answer within {limit:?}"));
        let answer = answer.ok_or_else(silence)?;
        answer.map_err(|error| failures::connection(&error, &self.target))
    }
}
