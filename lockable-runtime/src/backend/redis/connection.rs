//! One multiplexed connection and what is known of the server at its other end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, ServerErrorKind, Value};
use tokio::runtime::Handle;

use super::greeting::{Greeting, greet};
use super::script::Release;
use super::server_clock::ServerClock;
use super::{command, fault};
use crate::backend::Fault;
use crate::clock::{boot_time, timer_on, within};

/// So many calls in a row without an answer, and the connection is given up.
const UNANSWERED_LIMIT: u32 = 3;

/// How many commands may queue before callers wait; the client's 50 throttle a busy service.
const QUEUE: usize = 1024;

/// So many bytes are collected before they are sent while more commands queue. With the client's
/// 8 KiB, 64 busy tasks and the server take turns instead of working at the same time; of 1, 2, 4
/// and 8 KiB this was the fastest by `benches/pairs.rs`.
const FLUSH: usize = 2048;

/// Everything that opening a connection takes.
#[derive(Clone, Debug)]
pub(super) struct Opener {
    pub(super) client: Client,
    /// Where the server is, without credentials.
    pub(super) server: Arc<str>,
    /// The runtime whose timers keep the deadlines.
    pub(super) timers: Handle,
    pub(super) connect_deadline: Duration,
    pub(super) command_deadline: Duration,
}

/// A connection to a server that was asked for its version, its time and its scripts.
///
/// Commands run in the order of their calls. Whoever waits for an answer owns a part of the
/// connection, so it lives until the last answer has come, also after it was retired.
#[derive(Debug)]
pub(super) struct Connection {
    opener: Opener,
    commands: MultiplexedConnection,
    clock: ServerClock,
    /// What the server calls the release script; `None` when it may not be asked to keep one.
    release: Option<String>,
    /// Set by whoever finds the connection unusable; never unset. New calls connect anew then.
    retired: AtomicBool,
    unanswered: AtomicU32,
}

impl Connection {
    /// Connects, logs in and greets, without a limit of its own.
    pub(super) async fn open(opener: Opener) -> Result<Self, Fault> {
        // Deadlines are ours: the client's would run on the caller's clock, which may be paused.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE)
            .set_write_backpressure_boundary(FLUSH);
        let commands = opener.client.get_multiplexed_async_connection_with_config(&config).await;
        let mut commands = commands.map_err(|error| fault::of(&opener.server, &error))?;
        let Greeting { release, clock } = greet(&mut commands, &opener.server).await?;
        let (retired, unanswered) = (AtomicBool::new(false), AtomicU32::new(0));
        Ok(Self { opener, commands, clock, release, retired, unanswered })
    }

    pub(super) fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// Asks for the server's time when the last answer is too old to start a fencing floor from.
    pub(super) async fn refresh_clock(&self) -> Result<(), Fault> {
        let sent = boot_time();
        let (mut commands, time) = (self.commands.clone(), command::time());
        let limit = self.opener.command_deadline;
        let timer = || timer_on(&self.opener.timers, limit);
        let Some(answer) = within(timer, commands.send_packed_command(&time)).await else {
            self.unanswered();
            return Err(Fault::no_answer(&self.opener.server, limit));
        };
        self.clock.sample(&self.answered(answer)?, sent, boot_time());
        Ok(())
    }

    /// Sends the commands in one go; an error of the server's is one of the values.
    pub(super) async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let count = pipeline.len();
        self.answered(self.commands.clone().send_packed_commands(pipeline, 0, count).await)
    }

    /// Runs the script by its name, and by its text where the server does not know it.
    pub(super) async fn run(&self, script: &Release<'_>) -> Result<Value, Fault> {
        if let Some(name) = &self.release {
            let reply = self.evaluate("EVALSHA", name, script).await?;
            if !is_unknown_script(&reply) {
                return Ok(reply);
            }
        }
        self.evaluate("EVAL", Release::SOURCE, script).await
    }

    async fn evaluate(&self, verb: &str, text: &str, script: &Release<'_>) -> Result<Value, Fault> {
        let command = script.call(verb, text);
        self.answered(self.commands.clone().send_packed_command(&command).await)
    }

    /// An answer shows that the connection lives; an error here is never the server's.
    fn answered<T>(&self, outcome: Result<T, RedisError>) -> Result<T, Fault> {
        match outcome {
            Ok(answer) => {
                self.unanswered.store(0, Ordering::Relaxed);
                Ok(answer)
            }
            Err(error) => {
                self.retire();
                Err(fault::of(&self.opener.server, &error))
            }
        }
    }

    /// An error that the server answered. A server that became a replica is left.
    pub(super) fn fault(&self, error: &RedisError) -> Fault {
        if error.kind() == ServerErrorKind::ReadOnly.into() {
            self.retire();
        }
        fault::of(&self.opener.server, error)
    }

    pub(super) fn unexpected(&self, what: &str) -> Fault {
        self.retire();
        fault::unexpected(&self.opener.server, what)
    }

    pub(super) fn unanswered(&self) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_LIMIT {
            self.retire();
        }
    }

    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}

fn is_unknown_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}
