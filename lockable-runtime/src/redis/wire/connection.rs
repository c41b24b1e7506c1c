//! One multiplexed connection, and what is known of its server.
//!
//! See "Why our own deadlines and reconnects, and no `ConnectionManager`?" in DESIGN.md.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use tokio::runtime::Handle;

use super::command::{self, pipeline};

use super::delete::{Delete, Deleted};
use super::handshake::handshake;
use super::meaning::{Failed, Meaning};
use super::outbox::{Outbox, Unconfirmed};
use super::script::{Names, Read, ScriptCall, is_unknown_script};
use super::sent;
use super::session::{Handshake, Session};
use super::silence::Silence;
use crate::core::backend::{Attempt, Fault};
use crate::core::process::clock::{Moment, boot_time, timer_on};
use crate::core::types::error::LockErrorKind;
use crate::core::types::owner::ReleasedBy;
use crate::redis::connect::driven::Driven;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::fault;
use crate::redis::fences::FenceCounters;

/// The pause before Sentinels are asked again for a primary that could not be used; an announced failover ends it.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection after its handshake.
///
/// The commands of one call run in order, and those of the next call after its reply. A waiting call owns a part of the
/// connection, so it lives until the last reply, even after it was retired.
pub(crate) struct Connection {
    opener: Opener,
    pub(crate) target: Target,
    driven: Driven,
    pub(crate) fences: FenceCounters,
    since: Moment,
    pub(crate) names: Names,
    pub(crate) outbox: Outbox,
    pub(crate) confirmations: Outbox<Unconfirmed>,
    pub(crate) runtime: Handle,
    /// Set by the first call that finds the connection unusable; never unset. New calls connect again.
    retired: AtomicBool,
    silence: Silence,
    /// Whether the server reports changes by others to locks that are renewed here. Unset by the first reply that says
    /// otherwise.
    tracks: AtomicBool,
    delete: Option<Delete>,
    /// Set by the first reply that the command is missing or forbidden.
    refuses_delete: AtomicBool,
}

impl Connection {
    /// Connects, logs in and does the handshake, without a limit of its own. The connection that renews tracks its
    /// locks, if the server can.
    ///
    /// During a failover Sentinels may name a server that is gone, or not yet promoted: it is tried again for half of
    /// the connect deadline.
    pub(crate) async fn open(opener: Opener, renews: bool) -> Result<Self, Fault> {
        let begun = boot_time();
        let login = opener.login().await?;
        loop {
            let target = opener.target(&login).await?;
            match target.unless_over(Self::open_at(&opener, &target, renews)).await {
                Some(Err(fault)) if may_pass(&fault, &target) => {
                    if boot_time().since(begun) > opener.connect_deadline / 2 {
                        return Err(fault);
                    }
                    target.unless_over(timer_on(&opener.timers, PAUSE)).await;
                }
                Some(outcome) => return outcome,
                None if target.node.is_some() => {
                    return Err(fault::cluster::without_its_slots(&target.server));
                }
                None => {}
            }
        }
    }

    async fn open_at(opener: &Opener, target: &Target, renews: bool) -> Result<Self, Fault> {
        let limit = opener.patience(renews);
        let session = Session::connect(opener, target.clone(), renews, limit).await?;
        let Handshake { hello, names, tracks, .. } = handshake(&session).await?;
        let delete = Delete::of(&hello);
        opener.was_connected.store(true, Ordering::Relaxed);
        opener.warn_of_certificates();
        opener.deletes.store(delete.is_some(), Ordering::Relaxed);
        opener.demotion.end();
        target.works();
        Ok(Self {
            fences: FenceCounters::new(opener.lost_counters.clone()),
            opener: opener.clone(),
            target: session.target,
            driven: session.driven,
            since: boot_time(),
            names,
            outbox: Outbox::new(),
            confirmations: Outbox::new(),
            runtime: Handle::current(),
            retired: AtomicBool::new(false),
            silence: Silence::since(boot_time()),
            tracks: AtomicBool::new(tracks),
            delete,
            refuses_delete: AtomicBool::new(false),
        })
    }

    pub(crate) fn end(&self) -> impl Future<Output = bool> + use<> {
        self.driven.end()
    }

    /// Sends the commands in one go; a server's error is one of the values.
    pub(crate) async fn call(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        sent::report(&self.target.server, pipeline.cmd_iter());
        let count = pipeline.len();
        let replies = self.driven.commands.clone().send_packed_commands(pipeline, 0, count).await;
        let replies = self.answered(replies)?;
        if replies.len() == count { Ok(replies) } else { Err(self.unexpected_count()) }
    }

    /// As [`call`](Self::call), but for commands of which no call waits for the reply itself, with the limit of
    /// [`in_time`](Self::in_time).
    pub(crate) async fn call_in_time(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Fault> {
        self.in_time(self.call(pipeline)).await
    }

    /// Waits for at most two command deadlines, after which each call has given up.
    pub(crate) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let limit = self.opener.command_deadline.saturating_mul(2);
        let answer = self.opener.within(limit, answer).await;
        answer.unwrap_or_else(|| Err(Fault::no_answer(&self.target.server, limit)))
    }

    /// As [`call`](Self::call), for two commands. No async fn, which would store them beside their packed form.
    pub(crate) fn two(
        &self,
        commands: [Cmd; 2],
    ) -> impl Future<Output = Result<[Value; 2], Fault>> + use<'_> {
        let pipeline = pipeline(commands);
        async move {
            let replies = self.call(&pipeline).await?;
            replies.try_into().map_err(|_| self.unexpected_count())
        }
    }

    fn unexpected_count(&self) -> Fault {
        self.retire();
        fault::unexpected(&self.target.server, "commands that went together")
    }

    pub(crate) async fn run<T>(&self, call: ScriptCall<impl Read<T>>) -> Result<T, Failed> {
        let reply = self.evaluate(&call.command).await?;
        (call.read)(reply).map_err(|error| self.failed(&error))
    }

    /// Runs scripts and then these commands in one go; a server's error is one of the outcomes or replies.
    pub(crate) async fn run_each<T, R: Read<T>>(
        &self,
        calls: Vec<ScriptCall<R>>,
        last: &[Cmd],
    ) -> Result<(Vec<RedisResult<T>>, Vec<Value>), Fault> {
        if calls.is_empty() {
            // The client takes no empty pipeline.
            return Ok((Vec::new(), Vec::new()));
        }
        let calls = calls.into_iter().map(|call| (call.command, call.read));
        let (commands, reads): (Vec<_>, Vec<_>) = calls.unzip();
        let all = pipeline(commands.into_iter().chain(last.iter().cloned()));
        let mut replies = self.call(&all).await?;
        let behind = replies.split_off(reads.len());
        Ok((reads.into_iter().zip(replies).map(|(read, reply)| read(reply)).collect(), behind))
    }

    /// Waits until enough replicas have this connection's writes, or for a third of the command deadline, so that later
    /// requests are in time for the next `WAIT`.
    pub(crate) fn wait(&self) -> Cmd {
        command::wait(self.opener.replicas, self.opener.command_deadline / 3)
    }

    pub(crate) fn waited(&self, reply: &Value) -> Result<(), Fault> {
        let (server, needed) = (&self.target.server, self.opener.replicas);
        match command::integer(reply) {
            Ok(count) if count >= u64::from(needed) => Ok(()),
            Ok(count) => Err(fault::unconfirmed(server, count, needed)),
            Err(error) => {
                self.take_note(&error);
                Err(fault::About::Confirming.fault(server, &error))
            }
        }
    }

    /// The command that releases the attempt's lock; `None` if a script has to.
    pub(crate) fn delete_of(&self, attempt: &Attempt) -> Option<Cmd> {
        let is_usable = attempt.released_by == ReleasedBy::Command
            && !self.refuses_delete.load(Ordering::Relaxed);
        Some(self.delete.filter(|_| is_usable)?.command(attempt))
    }

    /// Whether the command has released the lock; if not, a script decides.
    pub(crate) async fn delete(&self, command: &Cmd) -> Result<bool, Failed> {
        let reply = self.evaluate(command).await?;
        self.deleted(&reply).map_err(|error| self.failed(&error))
    }

    /// Reads the reply to such a command, and notes if the server refuses it.
    pub(crate) fn deleted(&self, reply: &Value) -> Result<bool, RedisError> {
        let deleted = Deleted::of(reply)?;
        if deleted == Deleted::Refused {
            self.refuses_delete.store(true, Ordering::Relaxed);
            self.opener.deletes.store(false, Ordering::Relaxed);
        }
        Ok(deleted == Deleted::Free)
    }

    pub(crate) async fn evaluate(&self, command: &Cmd) -> Result<Value, Fault> {
        sent::report(&self.target.server, [command]);
        self.answered(self.driven.commands.clone().send_packed_command(command).await)
    }

    /// A reply shows that the connection lives; an error here is never the server's.
    fn answered<T>(&self, outcome: Result<T, RedisError>) -> Result<T, Fault> {
        outcome.inspect(|_| self.silence.ends()).map_err(|error| {
            self.retire();
            fault::of(&self.target.server, &error)
        })
    }

    pub(crate) fn failed(&self, error: &RedisError) -> Failed {
        Failed { fault: self.fault(error), meaning: self.meaning(error) }
    }

    pub(crate) fn meaning(&self, error: &RedisError) -> Meaning {
        if is_unknown_script(error) {
            return Meaning::Forgotten;
        }
        self.node().map_or(Meaning::Stays, |endpoint| Meaning::of(error, endpoint))
    }

    pub(crate) fn fault(&self, error: &RedisError) -> Fault {
        self.take_note(error);
        fault::of(&self.target.server, error)
    }

    /// Leaves a server that became a replica or gave its slots away, unless a cluster's node only gave away single
    /// slots. Remembers a server that refuses keys of several slots.
    ///
    /// After a reply that is not to its request, all later ones may be another's, too. See "Which garbled replies
    /// cannot be told from true ones?" in DESIGN.md.
    fn take_note(&self, error: &RedisError) {
        if is_unknown_script(error) {
            self.names.are_unknown();
        }
        if fault::is_no_answer(error) {
            self.retire();
        }
        let is_about_slot = self.target.node.is_some() && fault::is_redirect(error);
        if fault::leads_away(error) && !is_about_slot {
            self.opener.demotion.notice();
            self.retire();
        }
        if fault::is_cross_slot(error) {
            self.opener.is_sharded.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_sharded(&self) -> bool {
        self.opener.is_sharded.load(Ordering::Relaxed)
    }

    pub(crate) fn tracks(&self) -> bool {
        self.tracks.load(Ordering::Relaxed)
    }

    /// The server does not, although it seemed to.
    pub(crate) fn tracks_nothing(&self) {
        self.tracks.store(false, Ordering::Relaxed);
    }

    /// The fault when no reply can arrive any more.
    pub(crate) fn runtime_ended(&self) -> Fault {
        self.retire();
        fault::runtime_ended(&self.target.server)
    }

    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.since < other.since
    }

    /// A call gave up on an answer after that time; counts unless this connection is younger.
    pub(crate) fn unanswered(&self, waited: Duration) {
        if boot_time().since(self.since) < waited {
            return;
        }
        if self.silence.call_gives_up() {
            self.retire();
        }
    }

    pub(crate) fn begins(&self) {
        self.silence.call_begins(boot_time());
    }

    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire) || self.is_abandoned()
    }

    /// The future's output; `None` when the server is left first, from which a reply may never come.
    pub(crate) async fn unless_abandoned<F: Future>(&self, future: F) -> Option<F::Output> {
        self.target.unless_over(future).await
    }

    pub(crate) fn node(&self) -> Option<&Endpoint> {
        self.target.node.as_ref().map(|node| &node.endpoint)
    }

    /// Whether the server was left for another primary or node, so that its replies no longer count.
    ///
    /// See "What becomes of the replies and releases of a demoted primary?" in DESIGN.md.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.target.is_over()
    }
}

/// Whether a failover may be the reason; from now on Sentinels are asked for the primary.
fn may_pass(fault: &Fault, target: &Target) -> bool {
    target.doubt();
    target.term.is_some() && fault.kind == LockErrorKind::Unavailable
}
