//! One multiplexed connection and what is known of the server at its other end.
//!
//! See "Why our own deadlines and reconnection?" in DESIGN.md.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ::redis::{Client, Cmd, Pipeline, RedisError, Value};
use tokio::runtime::Handle;

use super::command::pipeline;
use super::driven::Driven;
use super::fault;
use super::greeting::greet;
use super::outbox::Outbox;
use super::script::{Call, Names, is_unknown_script};
use crate::backend::Fault;
use crate::backend::redis::fence::{FenceCounters, LostCounters};
use crate::types::clock::{Moment, boot_time, timer_on, within};
use crate::types::namespace::Namespace;

/// After this many calls in a row without an answer the connection is retired.
const UNANSWERED_LIMIT: u32 = 3;

/// Everything that opening a connection takes.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) client: Client,
    /// Where the server is, without credentials.
    pub(crate) server: Arc<str>,
    pub(crate) namespace: Namespace,
    /// The runtime whose timers keep the deadlines.
    pub(crate) timers: Handle,
    pub(crate) connect_deadline: Duration,
    pub(crate) command_deadline: Duration,
    /// Set when the server has refused a command because its keys are in several slots; never unset.
    /// From then on each command of this locker is about one lock.
    pub(crate) is_sharded: Arc<AtomicBool>,
    pub(crate) lost_counters: LostCounters,
}

impl Opener {
    /// The future's output; `None` when the limit comes first.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        within(|| timer_on(&self.timers, limit), future).await
    }

    /// The result within the connect deadline, or the fault that there is none.
    pub(crate) async fn connecting<T>(
        &self,
        connecting: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let limit = self.connect_deadline;
        let connected = self.within(limit, connecting).await;
        connected.unwrap_or_else(|| Err(fault::connect_timeout(&self.server, limit)))
    }

    /// The user of the URL.
    pub(crate) fn user(&self) -> &str {
        self.client.get_connection_info().redis_settings().username().unwrap_or("default")
    }
}

/// A connection to a server that was asked for its version and its scripts.
///
/// The commands of a call run in their order, and the next call's behind them once it was answered. A call
/// that waits for an answer owns a part of the connection, so it lives until the last answer has come, also
/// after it was retired.
pub(crate) struct Connection {
    opener: Opener,
    driven: Driven,
    pub(crate) fences: FenceCounters,
    /// When it was open, on the clock of this machine.
    since: Moment,
    pub(crate) names: Names,
    pub(crate) outbox: Outbox,
    /// The runtime that drives it.
    pub(crate) runtime: Handle,
    /// Set by the first call that finds the connection unusable; never unset. New calls connect again.
    retired: AtomicBool,
    unanswered: AtomicU32,
}

impl Connection {
    /// Connects, logs in and greets, without a limit of its own.
    pub(crate) async fn open(opener: Opener) -> Result<Self, Fault> {
        let driven = Driven::open(&opener.client).await;
        let mut driven = driven.map_err(|error| fault::of(&opener.server, &error))?;
        let names = greet(&mut driven.commands, &opener.server, &opener.namespace).await?;
        Ok(Self {
            fences: FenceCounters::new(opener.lost_counters.clone()),
            opener,
            driven,
            since: boot_time(),
            names,
            outbox: Outbox::new(),
            runtime: Handle::current(),
            retired: AtomicBool::new(false),
            unanswered: AtomicU32::new(0),
        })
    }

    /// Sends the commands in one go; an error of the server's is one of the values.
    pub(crate) async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let count = pipeline.len();
        let replies = self.driven.commands.clone().send_packed_commands(pipeline, 0, count).await;
        let replies = self.answered(replies)?;
        if replies.len() == count { Ok(replies) } else { Err(self.unexpected_count()) }
    }

    /// The same for commands that no call waits for itself: each of their calls has given up after two command
    /// deadlines.
    pub(crate) async fn call_in_time(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        let limit = self.opener.command_deadline.saturating_mul(2);
        let replies = self.opener.within(limit, self.call(pipeline)).await;
        replies.unwrap_or_else(|| Err(Fault::no_answer(&self.opener.server, limit)))
    }

    /// The same for two commands.
    pub(crate) async fn two(&self, commands: [Cmd; 2]) -> Result<[Value; 2], Fault> {
        let replies = self.call(&pipeline(commands)).await?;
        replies.try_into().map_err(|_| self.unexpected_count())
    }

    fn unexpected_count(&self) -> Fault {
        self.retire();
        fault::unexpected(&self.opener.server, "commands that went together")
    }

    /// Runs the script by its name, and by its text where the server does not know it.
    pub(crate) async fn run<C: Call>(&self, call: &C) -> Result<C::Outcome, Fault> {
        let mut reply = self.evaluate(&self.names.command(call)).await?;
        if is_unknown_script(&reply) {
            reply = self.evaluate(&self.names.by_text(call)).await?;
        }
        call.outcome(reply).map_err(|error| self.fault(&error))
    }

    /// Runs calls of scripts in one go; an error of the server's is one of the outcomes.
    pub(crate) async fn run_each<C: Call>(
        &self,
        calls: &[C],
    ) -> Result<Vec<Result<C::Outcome, RedisError>>, Fault> {
        if calls.is_empty() {
            // The client takes no empty pipeline.
            return Ok(Vec::new());
        }
        let by_name = pipeline(calls.iter().map(|call| self.names.command(call)));
        let mut replies = self.call(&by_name).await?;
        let is_missed = |(_, reply): &(&C, &mut Value)| is_unknown_script(reply);
        let missed: Vec<_> = calls.iter().zip(&mut replies).filter(is_missed).collect();
        if !missed.is_empty() {
            let by_text = pipeline(missed.iter().map(|(call, _)| self.names.by_text(*call)));
            let again = self.call(&by_text).await?;
            missed.into_iter().zip(again).for_each(|((_, reply), again)| *reply = again);
        }
        Ok(calls.iter().zip(replies).map(|(call, reply)| call.outcome(reply)).collect())
    }

    async fn evaluate(&self, command: &Cmd) -> Result<Value, Fault> {
        self.answered(self.driven.commands.clone().send_packed_command(command).await)
    }

    /// An answer shows that the connection lives; an error here is never the server's.
    fn answered<T>(&self, outcome: Result<T, RedisError>) -> Result<T, Fault> {
        outcome.inspect(|_| self.unanswered.store(0, Ordering::Relaxed)).map_err(|error| {
            self.retire();
            fault::of(&self.opener.server, &error)
        })
    }

    /// An error that the server answered. A server that became a replica, or gave its slots away, is left,
    /// and one that refuses keys of several slots is remembered.
    pub(crate) fn fault(&self, error: &RedisError) -> Fault {
        if fault::leads_away(error) {
            self.retire();
        }
        if fault::is_cross_slot(error) {
            self.opener.is_sharded.store(true, Ordering::Relaxed);
        }
        fault::of(&self.opener.server, error)
    }

    /// Whether commands with the keys of several locks are refused here.
    pub(crate) fn is_sharded(&self) -> bool {
        self.opener.is_sharded.load(Ordering::Relaxed)
    }

    /// No call gets an answer any more.
    pub(crate) fn runtime_ended(&self) -> Fault {
        self.retire();
        fault::runtime_ended(&self.opener.server)
    }

    /// A call gave up on an answer after that time: on this connection, unless it is younger.
    pub(crate) fn unanswered(&self, waited: Duration) {
        if boot_time().since(self.since) < waited {
            return;
        }
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_LIMIT {
            self.retire();
        }
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }
}
