//! Locks in Redis: the verbs as commands and scripts.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Sleep;

use self::batch::{releases, renewals};
use self::wire::connection::{Connection, is_unknown_script};
use self::wire::connections::Connections;
use self::wire::script::{Call, Place, Raise};
use self::wire::{command, fault, script};
use super::{
    Acquisition, Attempt, Backend, Checkup, Enqueued, Environment, Fault, Grant, Granted, Held,
    Release, Renewal, Renewed, Reply, Settings,
};
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::error::LockError;
use crate::types::key::LockKey;
use crate::types::token::{FencingToken, Origin};

mod batch;
mod check;
mod fence;
mod wait;
mod wire;

/// A Redis or Valkey server that is reached at one address.
#[derive(Clone)]
pub(crate) struct Redis {
    connections: Arc<Connections>,
}

impl Redis {
    /// # Errors
    /// When the URL is not one of a Redis server.
    pub(crate) fn open(settings: &Settings) -> Result<Self, LockError> {
        Ok(Self { connections: Arc::new(Connections::open(settings)?) })
    }

    /// Runs the verb on this runtime's connection; once more, on a new one, when that broke. Tells
    /// whether it ran twice.
    ///
    /// Verbs may be repeated: the owner token makes the second request find what the first one did.
    async fn on_connection<T>(
        &self,
        verb: impl AsyncFn(&Arc<Connection>) -> Result<T, Fault>,
    ) -> Result<(T, bool), Fault> {
        let connection = self.connections.ready().await?;
        let outcome = verb(&connection).await;
        if outcome.is_err() && connection.is_retired() {
            let connection = self.connections.ready().await?;
            return Ok((Box::pin(verb(&connection)).await?, true));
        }
        Ok((outcome?, false))
    }
}

/// Acquires in one round trip; the first reply tells the outcome.
///
/// The fencing token is sound because an answer before the lease's deadline means that the counter
/// went up while this attempt held the lock.
async fn acquire_on(connection: &Connection, attempt: &Attempt) -> Result<Acquisition, Fault> {
    let now = boot_time();
    let since = attempt.mark_sent(now);
    let fences = connection.fences();
    let has_fence = fences.has(&attempt.key, now);
    let count = if has_fence {
        command::count(attempt)
    } else {
        connection.scripts().command(&Raise { attempt })
    };
    let replies = connection.call(&command::acquire(attempt, count)).await?;
    let [locked, counted] = &replies[..] else {
        return Err(connection.unexpected("SET and INCR"));
    };
    let count = command::integer(counted);
    if let Ok(token) = count
        && !has_fence
    {
        fences.raised(&attempt.key, attempt.ttl, now, token);
    }
    let granted = command::is_granted(locked, attempt)
        .map_err(|error| fault::of_lock(connection.fault(&error), since == now));
    let is_lost = has_fence && count.as_ref().is_ok_and(|count| fences.lacks(*count));
    let is_uncounted = is_unknown_script(counted);
    if !matches!(granted, Ok(true)) {
        // A counter that this has begun would never end.
        if is_lost
            && let Err(fault) = Box::pin(raise_fence(connection, attempt, false)).await
            && connection.is_retired()
        {
            return Err(fault);
        }
        return granted.map(|_| Acquisition::Busy);
    }
    if is_lost || is_uncounted {
        let raised = Box::pin(raise_fence(connection, attempt, is_uncounted)).await?;
        return Ok(raised.map_or(Acquisition::Busy, |token| granted_at(since, token)));
    }
    let token = count.map_err(|error| fault::of_fence(connection.fault(&error), &attempt.key))?;
    Ok(granted_at(since, token))
}

fn granted_at(since: Moment, token: u64) -> Acquisition {
    Acquisition::Granted { fencing_token: FencingToken::new(token), since }
}

/// Raises a fence counter that was taken to be there, or was not counted up, in a request of its own. Gives the
/// token of this grant, unless the lock was lost before it was counted: others may have newer ones.
///
/// See "What if a trusted fence counter is gone?" in DESIGN.md.
async fn raise_fence(
    connection: &Connection,
    attempt: &Attempt,
    by_text: bool,
) -> Result<Option<u64>, Fault> {
    let (sent, raise) = (boot_time(), Raise { attempt });
    let by_name = connection.scripts().command(&raise);
    let verbs = [by_name, raise.command("EVAL", raise.script().source())];
    let mut replies = Vec::new();
    for verb in verbs.into_iter().skip(usize::from(by_text)) {
        replies = connection.call(&command::raise(attempt, verb)).await?;
        if !replies.first().is_some_and(is_unknown_script) {
            break;
        }
    }
    let [raised, locked] = &replies[..] else {
        return Err(connection.unexpected("EVAL and GET"));
    };
    let token = command::integer(raised)
        .map_err(|error| fault::of_fence(connection.fault(&error), &attempt.key))?;
    connection.fences().raised(&attempt.key, attempt.ttl, sent, token);
    Ok(command::is_own(locked, attempt).then_some(token))
}

/// A release that was repeated and does not find its own proves nothing: the first request, whose
/// answer was lost with its connection, may have released it, or the lock was lost before.
fn sure(found: Release, is_second: bool, server: &str) -> Result<Release, Fault> {
    if is_second && found != Release::Released {
        return Err(fault::unsure_release(server));
    }
    Ok(found)
}

impl Backend for Redis {
    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let this = self.clone();
        let acquire =
            async move |connection: &Arc<Connection>| acquire_on(connection, &attempt).await;
        Box::pin(async move { this.on_connection(acquire).await.map(|(outcome, _)| outcome) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let this = self.clone();
        let release =
            async move |connection: &Arc<Connection>| releases::release(connection, &attempt).await;
        Box::pin(async move {
            let (found, is_second) = this.on_connection(release).await?;
            sure(found, is_second, this.name())
        })
    }

    fn release_to(
        &self,
        attempt: Arc<Attempt>,
        next: Arc<Attempt>,
    ) -> Reply<(Release, Option<Grant>)> {
        let this = self.clone();
        let queued = Arc::clone(&next);
        let release = async move |connection: &Arc<Connection>| {
            releases::alone(connection, &attempt, Some(&queued)).await
        };
        Box::pin(async move {
            let sent = boot_time();
            next.mark_sent(sent);
            let ((found, handed), is_second) = this.on_connection(release).await?;
            let grant = handed.map(|(fence, time)| {
                this.connections.times().learn(sent, time, boot_time());
                Grant::answered(&next, fence, sent, next.ttl.provisional())
            });
            Ok((sure(found, is_second, this.name())?, grant))
        })
    }

    fn enqueue(&self, attempt: Arc<Attempt>) -> Reply<Enqueued> {
        let this = self.clone();
        let queued = Arc::clone(&attempt);
        let enqueue = async move |connection: &Arc<Connection>| {
            let asked = connection.run(&script::Enqueue { attempt: &queued }).await;
            asked.map_err(|fault| fault::of_queue(fault, &queued.key))
        };
        Box::pin(async move {
            let sent = boot_time();
            attempt.mark_sent(sent);
            match this.on_connection(enqueue).await?.0 {
                Place::Granted { fence, time } => {
                    this.connections.times().learn(sent, time, boot_time());
                    Ok(Enqueued::Granted(Grant::answered(&attempt, fence, sent, attempt.ttl)))
                }
                Place::Queued { remaining, time } => {
                    this.connections.times().learn(sent, time, boot_time());
                    Ok(Enqueued::Queued { remaining })
                }
            }
        })
    }

    fn leave(&self, attempt: Arc<Attempt>) -> Reply<()> {
        let this = self.clone();
        let leave = async move |connection: &Arc<Connection>| {
            connection.run(&script::Leave { attempt: &attempt }).await
        };
        Box::pin(async move { this.on_connection(leave).await.map(|((), _)| ()) })
    }

    fn listen(&self, origin: Origin, hook: Weak<dyn Granted>) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move { this.connections.grants().listen(origin, hook).await })
    }

    fn renew(&self, renewals: Vec<Renewal>) -> Reply<Vec<Result<Renewed, Fault>>> {
        let this = self.clone();
        let renew =
            async move |connection: &Arc<Connection>| renewals::renew(connection, &renewals).await;
        Box::pin(async move { this.on_connection(renew).await.map(|(outcomes, _)| outcomes) })
    }

    fn inspect(&self, key: LockKey) -> Reply<Option<Held>> {
        let this = self.clone();
        let inspect = async move |connection: &Arc<Connection>| {
            connection.run(&script::Inspect { key: &key }).await
        };
        Box::pin(async move { this.on_connection(inspect).await.map(|(held, _)| held) })
    }
}

impl Environment for Redis {
    fn name(&self) -> &str {
        self.connections.name()
    }

    fn store(&self) -> &str {
        self.connections.name()
    }

    fn now(&self) -> Moment {
        boot_time()
    }

    /// On the background runtime: the caller's may be paused, blocked or without timers.
    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(self.connections.background().handle(), duration)
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        drop(self.connections.background().handle().spawn(task));
    }

    /// The background runtime, which goes on while the caller's is blocked, and after it ended.
    fn home(&self, _: bool) -> Handle {
        self.connections.background().handle().clone()
    }

    fn connect(&self) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move { this.connections.ready().await.map(drop) })
    }

    fn when_connected(&self, hook: Box<dyn Fn() + Send + Sync>) {
        self.connections.when_connected(hook);
    }

    fn unanswered(&self, waited: Duration) {
        self.connections.unanswered(waited);
    }

    /// On the background runtime, so that it cleans up also when nobody waits for it any more.
    fn check(&self, prefix: &str) -> Checkup {
        let (opener, prefix) = (self.connections.opener().clone(), prefix.to_owned());
        let server = Arc::clone(&opener.server);
        let checked = self.connections.background().handle().spawn(check::check(opener, prefix));
        Box::pin(async move { checked.await.unwrap_or_else(|_| check::unchecked(&server)) })
    }
}
