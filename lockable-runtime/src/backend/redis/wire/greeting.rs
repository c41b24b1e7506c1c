//! The first requests of a connection: what the server is, its scripts, and whether our user can do
//! with a lock what locks need.
//!
//! See "Why does each new connection try a lock first?" in DESIGN.md.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Cmd, Pipeline, RedisError, Value};

use super::delete::Delete;
use super::script::{Names, is_unknown_script};
use super::server::{Mode, unfit_by_answers, unfit_by_greeting, version};
use super::source::Script;
use super::trial::{self, Step};
use super::{command, server};
use crate::backend::Fault;
use crate::backend::redis::connect::driven::Driven;
use crate::backend::redis::connect::opener::{Opener, Target};
use crate::backend::redis::fault;
use crate::backend::redis::wire::tracking;
use crate::check::{Code, Finding};
use crate::types::error::LockErrorKind;
use crate::types::key::LockKey;
use crate::types::namespace::Namespace;
use crate::types::owner::Origin;
use crate::types::slot::Slot;

/// What a connection uses of a server that was greeted.
pub(crate) struct Greeted {
    /// With what calls are written.
    pub(crate) names: Names,
    /// Whether the server sends what others do with locks.
    pub(crate) tracks: bool,
    pub(crate) delete: Option<Delete>,
}

/// Greets a server that has just been connected to; the flag is whether what it sends of locks is read.
pub(crate) async fn greet(
    commands: &mut MultiplexedConnection,
    opener: &Opener,
    target: &Target,
    hears: bool,
) -> Result<Greeted, Fault> {
    let server = &*target.server;
    let failed = |error: RedisError| fault::of(server, &error);
    let introduced = introduce(commands, opener, hears).await.map_err(failed)?;
    let Introduced { hello, tracks, names } = introduced;
    let mode = Mode::of(&hello);
    let delete = Delete::of(&hello);
    if let Some(elsewhere) = elsewhere(commands, &hello, target).await.map_err(failed)? {
        return Err(misdirected(&elsewhere, opener, target));
    }
    judge(hello, server)?;
    let mut names = names.map_err(failed)?;
    let origin = Origin::draw()?;
    if opener.is_for_reading {
        refuse_one_of_several(commands, mode, &opener.namespace.of_trial(origin), target).await?;
        return Ok(Greeted { names, tracks, delete });
    }
    let slot = target.node.as_ref().map(|node| node.slot());
    let stage = slot.map_or(Rehearsal::Alone(mode), Rehearsal::Node);
    let mut trial = rehearse(commands, &names, origin, stage).await.map_err(failed)?;
    if trial.is_unknown {
        names = Names::uncached(opener.namespace.clone(), opener.channels);
        trial = rehearse(commands, &names, origin, stage).await.map_err(failed)?;
    }
    if trial.is_spread {
        opener.is_sharded.store(true, Ordering::Relaxed);
    }
    trial.judge(target)?;
    if opener.is_for_confirming {
        let replied = commands.send_packed_command(&command::wait(0, WAIT)).await;
        let replied = replied.and_then(Value::extract_error);
        replied.map_err(|error| fault::of_wait(server, &error))?;
    }
    Ok(Greeted { names, tracks, delete })
}

/// One node of several has a part of the locks: of the others it would seem that no one has them.
async fn refuse_one_of_several(
    commands: &mut MultiplexedConnection,
    mode: Mode,
    trial: &Namespace,
    target: &Target,
) -> Result<(), Fault> {
    let server = &*target.server;
    let mut pipeline = Pipeline::new();
    mode.probe(trial, Mode::OF_READERS, &mut pipeline);
    if target.node.is_some() || pipeline.is_empty() {
        return Ok(());
    }
    let replies = commands.send_packed_commands(&pipeline, 0, pipeline.len()).await;
    let replies = replies.map_err(|error| fault::of(server, &error))?;
    unfit_by_answers(&replies, target).map_or(Ok(()), |unfit| Err(server::fault(&unfit, server)))
}

/// Why a server is the wrong one for locks, with the URL of the right one; it is asked for that where its
/// greeting says what it is.
pub(crate) async fn elsewhere(
    commands: &mut MultiplexedConnection,
    hello: &Value,
    target: &Target,
) -> Result<Option<Finding>, RedisError> {
    if Mode::of(hello) != Mode::Sentinel && !server::is_replica(hello) {
        return Ok(None);
    }
    let mut role = Cmd::new();
    role.arg("ROLE");
    let role = commands.send_packed_command(&role).await?;
    Ok(Some(server::elsewhere(hello, &role, target)))
}

/// The fault of a server that could not be connected to, or did not let the user in.
pub(crate) async fn not_let_in(opener: &Opener, target: &Target, error: &RedisError) -> Fault {
    if let Some(sentinel) = instead(target, error).await {
        return server::fault(&sentinel, &target.server);
    }
    let fault = fault::of_login(&target.server, error, target.login_advice);
    let has_advice = !fault::explain_login(error, target.login_advice).2.is_empty();
    if has_advice { fault } else { opener.unreached(fault) }
}

/// The Sentinel that is at the address: it refuses a database, and the password of a server, before it can be
/// asked what it is.
///
/// See "How is a Sentinel detected behind the URL of a server?" in DESIGN.md.
pub(crate) async fn instead(target: &Target, error: &RedisError) -> Option<Finding> {
    let is_login_refused = fault::is_login_refused(error);
    if target.term.is_some() || !(is_login_refused || fault::has_no_databases(error)) {
        return None;
    }
    let anonymous = target.anonymous(is_login_refused);
    let mut driven = Driven::open(&anonymous).await.ok()?;
    let mut greeting = Cmd::new();
    greeting.arg("HELLO");
    let hello = driven.commands.send_packed_command(&greeting).await.ok()?;
    if Mode::of(&hello) != Mode::Sentinel {
        return None;
    }
    elsewhere(&mut driven.commands, &hello, target).await.ok()?
}

/// A server that was the right one before, or that Sentinels or nodes name, is not written in the URL wrongly.
fn misdirected(elsewhere: &Finding, opener: &Opener, target: &Target) -> Fault {
    let is_named = target.term.is_some() || target.node.is_some();
    let is_passing = opener.was_connected.load(Ordering::Relaxed) || is_named;
    let fault = server::fault(elsewhere, &target.server);
    let is_replica = elsewhere.code() == Code::Replica;
    if is_replica && is_passing { Fault::unavailable(fault.message) } else { fault }
}

/// What a server answered to its greeting.
pub(crate) struct Introduced {
    pub(crate) hello: Value,
    /// Whether it sends what others do with locks.
    tracks: bool,
    /// With what it calls the scripts; the error is one that passes, after which it may cache them.
    pub(crate) names: Result<Names, RedisError>,
}

/// Asks for the version, names the connection, and loads the scripts into the server's cache.
///
/// A user who may do none of these can still lock: the scripts are then sent whole each time.
pub(crate) async fn introduce(
    commands: &mut MultiplexedConnection,
    opener: &Opener,
    hears: bool,
) -> Result<Introduced, RedisError> {
    let Opener { namespace, channels, client_name, .. } = opener;
    let mut pipeline = Pipeline::new();
    pipeline.cmd("HELLO");
    // Who only looks is asked for nothing more, and needs no script.
    if !opener.is_for_reading {
        pipeline.cmd("CLIENT").arg("SETNAME").arg(&**client_name);
        if hears {
            pipeline.add_command(tracking::turn_on());
        }
        for script in Script::needed(*channels) {
            pipeline.cmd("SCRIPT").arg("LOAD").arg(script.source(*channels));
        }
    }
    let count = pipeline.len();
    let mut replies = commands.send_packed_commands(&pipeline, 0, count).await?.into_iter();
    let hello = replies.next().unwrap_or(Value::Nil);
    // Whether it has a name now makes no difference to locks.
    drop(replies.next());
    let tracks = hears && replies.next().is_some_and(|reply| reply.extract_error().is_ok());
    let mut errors = replies.clone().filter_map(|reply| reply.extract_error().err());
    let names = match errors.find(fault::passes) {
        Some(error) => Err(error),
        None => Ok(Names::from_replies(namespace.clone(), *channels, replies)),
    };
    Ok(Introduced { hello, tracks, names })
}

/// Whether a server with locks gives that reply to a greeting; unknown of one that the user may not
/// greet.
fn judge(hello: Value, server: &str) -> Result<(), Fault> {
    if let Some(unfit) = unfit_by_greeting(&hello) {
        return Err(server::fault(&unfit, server));
    }
    if version(&hello).is_some() {
        return Ok(());
    }
    match hello.extract_error() {
        Err(error) if fault::is_missing_right(&error) => Ok(()),
        Err(error) => Err(fault::of(server, &error)),
        Ok(_) => Err(fault::unexpected(server, "`HELLO`")),
    }
}

/// What is tried.
#[derive(Clone, Copy)]
enum Rehearsal {
    /// A server that has all locks, if it has any.
    Alone(Mode),
    /// A node that has the locks of this slot, if it was not moved meanwhile.
    Node(Slot),
}

/// Does with a lock of its own what can be done with one, and asks for the other nodes of a cluster.
///
/// That a lock cannot be set shows when acquiring, but the rest would show only when the body runs
/// already, or has run, and the lock cannot be renewed or freed any more, or at the second grant of a lock.
async fn rehearse(
    commands: &mut MultiplexedConnection,
    names: &Names,
    origin: Origin,
    stage: Rehearsal,
) -> Result<Trial, RedisError> {
    let mut steps = Vec::new();
    let names = names.of_trial(origin);
    let namespace = &names.namespace;
    let key = match stage {
        Rehearsal::Alone(_) => LockKey::prefixed("", namespace.as_str()),
        Rehearsal::Node(slot) => LockKey::prefixed("", &namespace.in_slot(slot)),
    };
    if let Ok(key) = key {
        steps = trial::steps(&names, &key, origin);
        if let Rehearsal::Alone(_) = stage {
            steps.extend(trial::meetings(&names, ""));
        }
        steps.push(Step::script(BY_TEXT, command::empty_script()));
        let clean_up = command::clean_up(namespace, &key);
        steps.extend(clean_up.map(|command| Step::command(trial::CLEANING, command)));
    }
    let mut pipeline = command::pipeline(steps.iter().map(|step| step.command.clone()));
    if let Rehearsal::Alone(mode) = stage {
        mode.probe(namespace, Mode::OF_HOLDERS, &mut pipeline);
    }
    let mut replies = commands.send_packed_commands(&pipeline, 0, pipeline.len()).await?;
    let mut errors = replies.iter().cloned().filter_map(|reply| reply.extract_error().err());
    let is_unknown = errors.any(|error| is_unknown_script(&error));
    let is_spread = !is_unknown && trial::is_spread(&steps, &mut replies);
    Ok(Trial { steps, replies, is_unknown, is_spread })
}

/// What was done with a lock, and what the server answered.
struct Trial {
    /// There may be more replies, which are to the questions after the steps.
    steps: Vec<Step>,
    replies: Vec<Value>,
    /// Whether the server did not know a script by its name.
    is_unknown: bool,
    /// Whether keys of several slots are not for one script.
    is_spread: bool,
}

impl Trial {
    /// The fault is one that keeps locks from working. One that does not pass by itself says more than
    /// one that does.
    fn judge(self, target: &Target) -> Result<(), Fault> {
        let server = &*target.server;
        if trial::is_split(&self.steps, &self.replies) {
            return Err(server::fault(&server::split(), server));
        }
        let is_node = target.node.is_some();
        if let Some(unfit) = unfit_by_answers(&self.replies, target).filter(|_| !is_node) {
            return Err(server::fault(&unfit, server));
        }
        let mut passing = None;
        for (step, reply) in self.steps.into_iter().zip(self.replies) {
            let Err(error) = reply.extract_error() else { continue };
            // A slot that another node has by now, or that moves, says nothing about this one.
            if is_dispensable(step.name, &error) || (is_node && fault::is_redirect(&error)) {
                continue;
            }
            let of = if is_node { fault::of_missing_at_node } else { fault::of_missing };
            let fault = of(server, &error, step.advice);
            if fault.kind != LockErrorKind::Unavailable {
                return Err(fault);
            }
            passing = passing.or(Some(fault));
        }
        passing.map_or(Ok(()), Err)
    }
}

/// Whether locks that are held can be renewed and freed in spite of the error.
///
/// A server that is out of memory sets no new ones, and does that. The right to send the text of a
/// script is needed only where the server forgot its name.
fn is_dispensable(step: &str, error: &RedisError) -> bool {
    fault::is_out_of_memory(error) || (step == BY_TEXT && fault::is_missing_right(error))
}

const BY_TEXT: &str = "sending the text of a script";

/// No replica is waited for here.
const WAIT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Settings;
    use crate::background::background;

    /// In a failover behind one name, calls are worth being repeated.
    #[test]
    fn a_replica_that_was_the_primary_is_no_wrong_url() {
        let url = "redis://host:7";
        let settings = Settings { url: url.to_owned(), ..Settings::default() };
        let (opener, _) = Opener::new(&settings, background().unwrap()).unwrap();
        let target = Target::at(url);
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let hello = Value::Array(["mode", "standalone", "role", "replica"].map(text).to_vec());
        let replica = server::elsewhere(&hello, &Value::Nil, &target);
        let kind = || misdirected(&replica, &opener, &target).kind;
        assert_eq!(kind(), LockErrorKind::Refused);
        opener.was_connected.store(true, Ordering::Relaxed);
        assert_eq!(kind(), LockErrorKind::Unavailable);
    }
}
