//! What is asked of a server before the first lock: its version, its scripts, the rights of our
//! user, and its time.

use ::redis::aio::MultiplexedConnection;
use ::redis::{FromRedisValue, Pipeline, RedisError, Value};

use super::script::Release;
use super::server_clock::ServerClock;
use super::{command, fault};
use crate::backend::{Attempt, Fault};
use crate::clock::boot_time;
use crate::key::LockKey;
use crate::options::Ttl;

/// What a server answered.
pub(super) struct Greeting {
    /// What it calls the release script; `None` when it may not be asked to keep one.
    pub(super) release: Option<String>,
    pub(super) clock: ServerClock,
}

/// Greets a server that has just been connected to.
pub(super) async fn greet(
    commands: &mut MultiplexedConnection,
    server: &str,
) -> Result<Greeting, Fault> {
    let failed = |error: RedisError| fault::of(server, &error);
    let [hello, release] = introduce(commands).await.map_err(failed)?;
    if let Some(version) = version(&hello).filter(|version| !is_supported(version)) {
        return Err(fault::too_old(server, &version));
    }
    let release = String::from_redis_value(release).ok();
    if let Some(error) = rehearse(commands, release.as_deref()).await.map_err(failed)? {
        return Err(fault::of(server, &error));
    }
    let clock = learn_time(commands).await.map_err(failed)?;
    let clock = clock.ok_or_else(|| fault::unexpected(server, "TIME"))?;
    Ok(Greeting { release, clock })
}

/// Asks for the version, and leaves the release script with the server.
///
/// A user who may do neither can still lock: the script is then sent whole each time.
async fn introduce(commands: &mut MultiplexedConnection) -> Result<[Value; 2], RedisError> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.cmd("HELLO");
    pipeline.cmd("SCRIPT").arg("LOAD").arg(Release::SOURCE);
    let mut replies = commands.send_packed_commands(&pipeline, 0, 2).await?.into_iter();
    let mut next = || replies.next().unwrap_or(Value::Nil);
    Ok([next(), next()])
}

/// The version that the server tells; before 6.2 there is no such greeting.
fn version(hello: &Value) -> Option<String> {
    if let Value::ServerError(error) = hello {
        return (error.code() == "ERR").then(|| "older than 6.2".to_owned());
    }
    let fields = Vec::<(String, Value)>::from_redis_value_ref(hello).ok()?;
    let (_, version) = fields.into_iter().find(|(name, _)| name == "version")?;
    String::from_redis_value(version).ok()
}

fn is_supported(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 7)
}

/// Releases a lock that nobody else knows; gives the error when a right for that is missing.
///
/// The rights to acquire show when acquiring, but those to release would show only after the body
/// has run, when the lock cannot be freed any more.
async fn rehearse(
    commands: &mut MultiplexedConnection,
    release: Option<&str>,
) -> Result<Option<RedisError>, RedisError> {
    // Where the floors are, because a user has to be let there in any case.
    let attempt = Attempt::new(LockKey::from_static("lockable:floor:{lockable:probe}"), Ttl::MIN);
    let (verb, text) = release.map_or(("EVAL", Release::SOURCE), |name| ("EVALSHA", name));
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.add_command(command::set_lock(&attempt));
    pipeline.add_command(Release { attempt: &attempt }.call(verb, text));
    let replies = commands.send_packed_commands(&pipeline, 0, 2).await?;
    let mut errors = replies.into_iter().filter_map(|reply| reply.extract_error().err());
    Ok(errors.find(fault::is_missing_right))
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
