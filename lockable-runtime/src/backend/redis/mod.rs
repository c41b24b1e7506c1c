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

    /// Once more, on a new connection, when the first one broke: the owner token makes the second
    /// request find what the first one did.
    async fn acquire(self, attempt: Arc<Attempt>) -> Result<Acquisition, Fault> {
        let connection = self.connections.ready().await?;
        match acquire_on(&connection, &attempt).await {
            Err(_) if connection.is_retired() => {
                acquire_on(&*self.connections.ready().await?, &attempt).await
            }
            outcome => outcome,
        }
    }

    async fn release_owned(self, attempt: Arc<Attempt>) -> Result<Release, Fault> {
        let connection = self.connections.ready().await?;
        match release_on(&connection, &attempt).await {
            Err(_) if connection.is_retired() => {
                release_on(&*self.connections.ready().await?, &attempt).await
            }
            outcome => outcome,
        }
    }
}

/// Acquires by plain commands in one round trip; the first reply tells the outcome.
///
/// The fencing token is sound because an answer before the lease's deadline means that the counter
/// went up while this attempt held the lock.
async fn acquire_on(connection: &Connection, attempt: &Attempt) -> Result<Acquisition, Fault> {
    connection.refresh_clock().await?;
    let now = boot_time();
    let since = attempt.mark_sent(now);
    let clock = connection.clock();
    let seed = clock.micros(now);
    let replies = connection.call(&command::acquire(attempt, seed, clock.is_due(now))).await?;
    let [locked, _, counted, time @ ..] = replies.as_slice() else {
        return Err(connection.unexpected("SET, SET, INCR"));
    };
    if let [time] = time {
        clock.sample(time, now, boot_time());
    }
    let granted = command::is_granted(locked, attempt);
    if !granted.map_err(|error| connection.fault(&error))? {
        return Ok(Acquisition::Contended);
    }
    let counted = command::integer(counted).map_err(|error| connection.fault(&error))?;
    let token = sound_token(connection, attempt, seed, counted).await?;
    Ok(Acquisition::Granted { fencing_token: FencingToken::new(token), since })
}

/// The token of a grant; a floor that does not come from the time is set up anew.
///
/// When the floor expires, or is deleted, between the two commands about it, the second one makes
/// a counter that starts at 1 and never expires. Only the holder mends it, so nobody counts back.
async fn sound_token(
    connection: &Connection,
    attempt: &Attempt,
    seed: u64,
    counted: u64,
) -> Result<u64, Fault> {
    if counted < seed / 2 {
        connection.call(&command::reset_floor(attempt, seed)).await?;
        return Ok(seed);
    }
    Ok(counted)
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
        Box::pin(self.clone().acquire(attempt))
    }

    fn release(&self, attempt: Arc<Attempt>) -> Reply<Release> {
        Box::pin(self.clone().release_owned(attempt))
    }

    fn unanswered(&self) {
        self.connections.unanswered();
    }

    fn detach(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.connections.background().spawn(task);
    }
}
