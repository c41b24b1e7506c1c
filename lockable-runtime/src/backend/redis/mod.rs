//! Locks in Redis: the verbs as commands and scripts.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Sleep;

use self::connection::Connection;
use self::connections::Connections;
use super::{Acquisition, Attempt, Backend, Fault, Release, Reply, Settings};
use crate::clock::{Moment, boot_time, timer_on};
use crate::error::LockError;
use crate::token::FencingToken;

mod command;
mod connection;
mod connections;
mod fault;
mod greeting;
mod script;
mod server_clock;

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
        verb: impl AsyncFn(&Connection) -> Result<T, Fault>,
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

/// Acquires by plain commands in one round trip; the first reply tells the outcome.
///
/// The fencing token is sound because an answer before the lease's deadline means that the counter
/// went up while this attempt held the lock.
async fn acquire_on(connection: &Connection, attempt: &Attempt) -> Result<Acquisition, Fault> {
    let clock = connection.clock();
    if clock.is_old(boot_time()) {
        Box::pin(connection.refresh_clock()).await?;
    }
    let now = boot_time();
    let since = attempt.mark_sent(now);
    let seed = clock.micros(now);
    let acquire = command::Acquire { attempt, seed, asks_time: clock.take_turn(now) };
    let replies = connection.call(&acquire.commands()).await?;
    let [locked, _, counted, time @ ..] = replies.as_slice() else {
        return Err(connection.unexpected("SET, SET and INCR"));
    };
    if let [time] = time {
        clock.sample(time, now, boot_time());
    }
    let granted = command::is_granted(locked, attempt)
        .map_err(|error| fault::of_lock(connection.fault(&error), since == now))?;
    if !granted {
        return Ok(Acquisition::Contended);
    }
    let counted = command::integer(counted)
        .map_err(|error| fault::of_floor(connection.fault(&error), &attempt.key))?;
    // A floor comes from the time, and no server's clock has gone back by half of its reading.
    let token = if counted < seed / 2 {
        Box::pin(restart_floor(connection, attempt, seed)).await?
    } else {
        counted
    };
    Ok(Acquisition::Granted { fencing_token: FencingToken::new(token), since })
}

/// Sets up a floor that does not come from the time; gives the token of this grant.
///
/// When the floor expires, or is deleted, between the two commands about it, the second one makes
/// a counter that starts at 1 and never expires. Only the holder mends it, so nobody counts back.
async fn restart_floor(
    connection: &Connection,
    attempt: &Attempt,
    seed: u64,
) -> Result<u64, Fault> {
    connection.call(&command::reset_floor(attempt, seed)).await?;
    Ok(seed)
}

async fn release_on(connection: &Connection, attempt: &Attempt) -> Result<Release, Fault> {
    let reply = connection.run(&script::Release { attempt }).await?;
    script::Release::outcome(reply).map_err(|error| connection.fault(&error))
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.name()).finish()
    }
}

impl Backend for Redis {
    fn name(&self) -> &str {
        self.connections.name()
    }

    fn now(&self) -> Moment {
        boot_time()
    }

    /// On the background runtime: the caller's may be paused, blocked or without timers.
    fn timer(&self, duration: Duration) -> Sleep {
        timer_on(self.connections.background().handle(), duration)
    }

    fn connect(&self) -> Reply<()> {
        let this = self.clone();
        Box::pin(async move { this.connections.ready().await.map(drop) })
    }

    fn try_acquire(&self, attempt: Arc<Attempt>) -> Reply<Acquisition> {
        let this = self.clone();
        let acquire = async move |connection: &Connection| acquire_on(connection, &attempt).await;
        Box::pin(async move { this.on_connection(acquire).await.map(|(outcome, _)| outcome) })
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        let this = self.clone();
        let release = async move |connection: &Connection| release_on(connection, &attempt).await;
        Box::pin(async move {
            match this.on_connection(release).await? {
                // The first request, whose answer was lost with its connection, has released it.
                (Release::Absent, true) => Ok(Release::Released),
                (found, _) => Ok(found),
            }
        })
    }

    fn unanswered(&self) {
        self.connections.unanswered();
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.connections.background().spawn(task);
    }
}
