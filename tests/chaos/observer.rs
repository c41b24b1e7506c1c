//! Looks at the locks in the servers, again and again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockable_tests::Server;
use redis::{Client, Connection, ConnectionLike, RedisError, RedisResult, Value};

use crate::nap;
use crate::owner::hash;
use crate::record::boot_time;
use crate::world::{LOCKS, World};

/// What a server has at a lock's key: the owner token and the rest of its TTL.
type Look = (Option<String>, i64);

/// Writes samples until `ends`.
pub(crate) fn watch(world: &World, ends: &AtomicBool) {
    let mut connections = HashMap::new();
    while !ends.load(Ordering::Relaxed) {
        nap(BETWEEN);
        for server in world.servers.running() {
            let before = boot_time();
            let Ok(looks) = look(&mut connections, server) else { continue };
            let after = boot_time();
            for (lock, look) in LOCKS.iter().zip(looks) {
                let Ok((owner, ttl)) = look else { continue };
                let owner = owner.map_or_else(|| "-".to_owned(), |owner| hash(&owner));
                let line = format_args!("sample {lock} {before} {after} {owner} {ttl}");
                world.record.write(line);
            }
        }
    }
}

/// An error is a server that is gone or that is a replica, and that of a look a server that has not the slot.
fn look(
    connections: &mut HashMap<SocketAddr, Connection>,
    server: &Server,
) -> RedisResult<Vec<RedisResult<Look>>> {
    let mut connection = match connections.remove(&server.addr()) {
        Some(connection) => connection,
        None => connect(server)?,
    };
    let mut commands = redis::pipe();
    commands.ignore_errors().cmd("ROLE");
    for lock in &*LOCKS {
        // Both at one moment.
        commands.cmd("EVAL").arg(LOOK).arg(1).arg(lock);
    }
    let replies: RedisResult<Vec<RedisResult<Value>>> = commands.query(&mut connection);
    if connection.is_open() {
        connections.insert(server.addr(), connection);
    }
    let mut replies = replies?.into_iter();
    if !replies.next().is_some_and(|role| role.is_ok_and(|role| is_master(&role))) {
        return Err((redis::ErrorKind::Client, "a replica").into());
    }
    Ok(replies.map(|reply| redis::from_redis_value(reply?).map_err(RedisError::from)).collect())
}

fn is_master(role: &Value) -> bool {
    let Value::Array(role) = role else { return false };
    matches!(role.first(), Some(Value::BulkString(name)) if name == b"master")
}

fn connect(server: &Server) -> RedisResult<Connection> {
    let client = Client::open(server.url_with("harness", "harness", 0))?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

const LOOK: &str = "return {redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])}";

const BETWEEN: Duration = Duration::from_millis(25);
const PATIENCE: Duration = Duration::from_millis(300);
