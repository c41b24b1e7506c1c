//! What is asked of a server before the first lock: its version, its scripts, the rights of our
//! user, and its time.

use std::sync::Arc;

use ::redis::aio::MultiplexedConnection;
use ::redis::{FromRedisValue, Pipeline, RedisError, Value};

use super::script::{Enqueue, Leave, Names, Release, Renew, Script};
use super::server_clock::ServerClock;
use super::{command, fault};
use crate::backend::{Attempt, Fault, Renewal};
use crate::clock::boot_time;
use crate::key::LockKey;
use crate::options::Ttl;
use crate::token::Origin;

/// What a server answered.
pub(super) struct Greeting {
    pub(super) scripts: Names,
    pub(super) clock: ServerClock,
}

/// Greets a server that has just been connected to.
pub(super) async fn greet(
    commands: &mut MultiplexedConnection,
    server: &str,
) -> Result<Greeting, Fault> {
    let failed = |error: RedisError| fault::of(server, &error);
    let (hello, scripts) = introduce(commands).await.map_err(failed)?;
    if let Some(version) = version(&hello).filter(|version| !is_supported(version)) {
        return Err(fault::too_old(server, &version));
    }
    if let Some(error) = rehearse(commands, &scripts).await.map_err(failed)? {
        return Err(fault::of(server, &error));
    }
    let clock = learn_time(commands).await.map_err(failed)?;
    let clock = clock.ok_or_else(|| fault::unexpected(server, "TIME"))?;
    Ok(Greeting { scripts, clock })
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
/// The rights to acquire show when acquiring, but these would show only when the body runs already,
/// or has run, and the lock cannot be kept or freed any more.
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
    let mut pipeline = Pipeline::with_capacity(6);
    pipeline.add_command(command::set_lock(&holder));
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

/// The quickest of three answers bounds the server's time best.
async fn learn_time(
    commands: &mut MultiplexedConnection,
) -> Result<Option<ServerClock>, RedisError> {
    let mut clock: Option<ServerClock> = None;
    for _ in 0..3 {
        let sent = boot_time();
        let time = commands.send_packed_command(&command::time()).await?.extract_error()?;
        match &clock {
            None => clock = ServerClock::start(&time, sent, boot_time()),
            Some(clock) => clock.sample(&time, sent, boot_time()),
        }
    }
    Ok(clock)
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
