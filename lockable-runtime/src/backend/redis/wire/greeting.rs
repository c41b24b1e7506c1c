//! What is asked of a server before the first lock: what it is, its scripts, and whether our user can
//! do with a lock what locks need.
//!
//! See "Why is a server tried before the first lock?" in DESIGN.md.

use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, Pipeline, RedisError, Value};

use super::script::{Enqueue, Leave, Names, Release, Renew, Script, Seed, is_unknown_script};
use super::server::{Mode, Unfit, probe, version};
use super::{command, fault};
use crate::backend::{Attempt, Fault, Renewal};
use crate::types::clock::boot_time;
use crate::types::error::LockErrorKind;
use crate::types::options::Ttl;
use crate::types::token::{Origin, OwnerToken};

/// Greets a server that has just been connected to; gives what it calls the scripts.
pub(crate) async fn greet(
    commands: &mut MultiplexedConnection,
    server: &str,
) -> Result<Names, Fault> {
    let failed = |error: RedisError| fault::of(server, &error);
    let Introduced { hello, scripts } = introduce(commands).await.map_err(failed)?;
    let mode = Mode::of(&hello);
    judge(hello, server)?;
    let scripts = scripts.map_err(failed)?;
    let origin = Origin::draw()?;
    let mut trial = rehearse(commands, &scripts, origin, mode).await.map_err(failed)?;
    if trial.replies.iter().any(is_unknown_script) {
        trial = rehearse(commands, &Names::default(), origin, mode).await.map_err(failed)?;
    }
    trial.judge(server)?;
    Ok(scripts)
}

/// What a server answered to its greeting.
pub(crate) struct Introduced {
    pub(crate) hello: Value,
    /// What it calls the scripts; the error is one that passes, after which it may be asked to keep them.
    pub(crate) scripts: Result<Names, RedisError>,
}

/// Asks for the version, and leaves the scripts with the server.
///
/// A user who may do neither can still lock: the scripts are then sent whole each time.
pub(crate) async fn introduce(
    commands: &mut MultiplexedConnection,
) -> Result<Introduced, RedisError> {
    let mut pipeline = Pipeline::with_capacity(1 + Script::ALL.len());
    pipeline.cmd("HELLO");
    for script in Script::ALL {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(script.source());
    }
    let count = pipeline.len();
    let mut replies = commands.send_packed_commands(&pipeline, 0, count).await?.into_iter();
    let hello = replies.next().unwrap_or(Value::Nil);
    let mut errors = replies.clone().filter_map(|reply| reply.extract_error().err());
    let scripts = match errors.find(fault::passes) {
        Some(error) => Err(error),
        None => Ok(Names::from_replies(replies)),
    };
    Ok(Introduced { hello, scripts })
}

/// Whether the answer to a greeting is that of a server with locks; nothing is known of one that may
/// not be greeted.
fn judge(hello: Value, server: &str) -> Result<(), Fault> {
    if let Some(unfit) = Unfit::by_greeting(&hello) {
        return Err(unfit.fault(server));
    }
    if version(&hello).is_some() {
        return Ok(());
    }
    match hello.extract_error() {
        Err(error) if fault::is_missing_right(&error) => Ok(()),
        Err(error) => Err(fault::of(server, &error)),
        Ok(_) => Err(fault::unexpected(server, "HELLO")),
    }
}

/// Does with a lock that nobody else knows what can be done with one, and asks for the other nodes of
/// a cluster.
///
/// That a lock cannot be set shows when acquiring, but the rest would show only when the body runs
/// already, or has run, and the lock cannot be kept or freed any more, or at the second grant of a lock.
async fn rehearse(
    commands: &mut MultiplexedConnection,
    scripts: &Names,
    origin: Origin,
    mode: Mode,
) -> Result<Trial, RedisError> {
    let mut trial = Trial { steps: Vec::new(), replies: Vec::new() };
    let mut pipeline = trial.pipeline(scripts, origin);
    mode.ask(&mut pipeline);
    trial.replies = commands.send_packed_commands(&pipeline, 0, pipeline.len()).await?;
    Ok(trial)
}

/// What was done with a lock, and what the server answered.
struct Trial {
    /// There may be more replies, which are to the questions after the steps.
    steps: Vec<Step>,
    replies: Vec<Value>,
}

impl Trial {
    fn pipeline(&mut self, scripts: &Names, origin: Origin) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(16);
        let Some(key) = probe(&origin.to_string()) else { return pipeline };
        // The shortest lives, because nobody cleans up where nothing may be deleted.
        let attempt = |number| {
            let owner = OwnerToken::at(origin, number, None);
            Arc::new(Attempt::owned(key.clone(), Ttl::DEFAULT.provisional(), owner))
        };
        let (holder, waiter) = (attempt(1), attempt(2));
        let renewals = [Renewal::new(&holder, Some(holder.ttl), boot_time())];
        let mut step = |step, command: Cmd| {
            self.steps.push(step);
            pipeline.add_command(command);
        };
        step(Step::Command, command::set_lock(&holder));
        // Before it is counted up, so that it has an end.
        step(Step::Run, scripts.command(&Seed { attempt: &holder }));
        step(Step::Command, command::count(&holder));
        step(Step::Run, scripts.command(&Renew { renewals: &renewals }));
        step(Step::Run, scripts.command(&Enqueue { attempt: &waiter }));
        // Nobody listens for the waiter, so the lock is free after this.
        let release = Release { attempt: &holder, kept_for: None, next: None };
        step(Step::Run, scripts.command(&release));
        step(Step::Run, scripts.command(&Leave { attempt: &waiter }));
        step(Step::RunText, command::empty_script());
        for command in command::clean_up(&key) {
            step(Step::Command, command);
        }
        pipeline
    }

    /// The fault is one that keeps locks from working. One that does not pass by itself says more than
    /// one that does.
    fn judge(self, server: &str) -> Result<(), Fault> {
        if let Some(unfit) = Unfit::by_answers(&self.replies) {
            return Err(unfit.fault(server));
        }
        let mut passing = None;
        for (step, reply) in self.steps.into_iter().zip(self.replies) {
            let Err(error) = reply.extract_error() else { continue };
            if step.does_without(&error) {
                continue;
            }
            let fault = fault::of_missing(server, &error, step.advice());
            if fault.kind != LockErrorKind::Unavailable {
                return Err(fault);
            }
            passing = passing.or(Some(fault));
        }
        passing.map_or(Ok(()), Err)
    }
}

/// A step of a trial, by what it needs of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Command,
    /// A script by its name, or by its text where the server keeps none.
    Run,
    /// A script by its text.
    RunText,
}

impl Step {
    /// Whether locks that are held can be kept and freed in spite of the error.
    ///
    /// A server that is out of memory sets no new ones, and does that. The right to send the text of a
    /// script is needed only where the server forgot its name.
    fn does_without(self, error: &RedisError) -> bool {
        fault::is_out_of_memory(error) || (self == Self::RunText && fault::is_missing_right(error))
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Command => fault::NO_COMMAND,
            Self::Run | Self::RunText => fault::NO_SCRIPTS,
        }
    }
}
