//! What is asked of a server before the first lock: its version, its scripts, and the rights of our
//! user.

use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{FromRedisValue, Pipeline, RedisError, Value};

use super::script::{Enqueue, Leave, Names, Release, Renew, Script};
use super::{command, fault};
use crate::backend::{Attempt, Fault, Renewal};
use crate::clock::boot_time;
use crate::key::LockKey;
use crate::options::Ttl;
use crate::token::Origin;

/// Greets a server that has just been connected to; gives what it calls the scripts.
pub(super) async fn greet(
    commands: &mut MultiplexedConnection,
    server: &str,
) -> Result<Names, Fault> {
    let failed = |error: RedisError| fault::of(server, &error);
    let (hello, scripts) = introduce(commands).await.map_err(failed)?;
    judge(hello, server)?;
    if let Some(error) = rehearse(commands, &scripts).await.map_err(failed)? {
        return Err(fault::of(server, &error));
    }
    Ok(scripts)
}

/// Asks for the version, and leaves the scripts with the server.
///
/// A user who may do neither can still lock: the scripts are then sent whole each time.
pub(super) async fn introduce(
    commands: &mut MultiplexedConnection,
) -> Result<(Value, Names), RedisError> {
    let mut pipeline = Pipeline::with_capacity(1 + Script::ALL.len());
    pipeline.cmd("HELLO");
    for script in Script::ALL {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(script.source());
    }
    let count = pipeline.len();
    let mut replies = commands.send_packed_commands(&pipeline, 0, count).await?.into_iter();
    let hello = replies.next().unwrap_or(Value::Nil);
    Ok((hello, Names::from_replies(replies)))
}

/// Whether the answer to a greeting is that of a server with locks; nothing is known of one that may
/// not be greeted.
fn judge(hello: Value, server: &str) -> Result<(), Fault> {
    match version(&hello) {
        Some(version) if is_supported(&version) => return Ok(()),
        Some(version) => return Err(fault::too_old(server, &version)),
        None => {}
    }
    match hello.extract_error() {
        Err(error) if fault::is_missing_right(&error) => Ok(()),
        Err(error) => Err(fault::of(server, &error)),
        Ok(_) => Err(fault::unexpected(server, "HELLO")),
    }
}

/// The version that the server tells; before 6.2 there is no such greeting.
pub(super) fn version(hello: &Value) -> Option<String> {
    if let Value::ServerError(error) = hello {
        return (error.code() == "ERR").then(|| "older than 6.2".to_owned());
    }
    told(hello, "version")
}

/// What a greeting tells under that name.
pub(super) fn told(hello: &Value, name: &str) -> Option<String> {
    let fields = Vec::<(String, Value)>::from_redis_value_ref(hello).ok()?;
    let (_, value) = fields.into_iter().find(|(field, _)| field == name)?;
    String::from_redis_value(value).ok()
}

pub(super) fn is_supported(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 7)
}

/// Does with a lock that nobody else knows what can be done with one; gives the error when a right
/// for that is missing, or the server is a replica.
///
/// The right to set a lock shows when acquiring, but these would show only when the body runs already,
/// or has run, and the lock cannot be kept or freed any more, or at the second grant of a lock.
async fn rehearse(
    commands: &mut MultiplexedConnection,
    scripts: &Names,
) -> Result<Option<RedisError>, RedisError> {
    // Where the floors are, because a user has to be let there in any case; nobody else's.
    let key =
        LockKey::prefixed("", &format!("lockable:floor:{{lockable:probe:{}}}", Origin::new()));
    let Ok(key) = key else { return Ok(None) };
    let attempt = || Arc::new(Attempt::new(key.clone(), Ttl::DEFAULT, None));
    let (holder, waiter) = (attempt(), attempt());
    let renewal = Renewal::new(&holder, Some(Ttl::DEFAULT), boot_time());
    let mut pipeline = Pipeline::with_capacity(7);
    pipeline.add_command(command::set_lock(&holder));
    pipeline.add_command(command::count(&holder));
    pipeline.add_command(scripts.command(&Renew { renewals: &[renewal] }));
    pipeline.add_command(scripts.command(&Enqueue { attempt: &waiter }));
    // Nobody listens for the waiter, so the lock is free after this.
    let release = Release { attempt: &holder, kept_for: None, next: None };
    pipeline.add_command(scripts.command(&release));
    pipeline.add_command(scripts.command(&Leave { attempt: &waiter }));
    pipeline.cmd("DEL").arg(holder.key.floor());
    let count = pipeline.len();
    let replies = commands.send_packed_commands(&pipeline, 0, count).await?;
    let mut errors = replies.into_iter().filter_map(|reply| reply.extract_error().err());
    Ok(errors.find(|error| fault::is_missing_right(error) || fault::is_read_only(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_from_seven_on_are_supported() {
        for (version, supported) in
            [("7.0.15", true), ("8.6.0", true), ("10.0.0", true), ("6.2.14", false), ("old", false)]
        {
            assert_eq!(is_supported(version), supported, "{version}");
        }
    }
}
