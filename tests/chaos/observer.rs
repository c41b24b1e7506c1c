//! Looks at the locks in the servers, again and again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockable_tests::{Pace, Server};
use redis::{Client, Connection, ConnectionLike, RedisResult};

use crate::nap;
use crate::record::boot_time;
use crate::world::{LOCKS, World};

/// Writes samples until `ends`.
pub(crate) fn watch(world: &World, ends: &AtomicBool) {
    let (pace, mut looks) = (Pace::start(), HashMap::new());
    while !ends.load(Ordering::Relaxed) {
        nap(BETWEEN);
        for server in world.servers.running() {
            for lock in LOCKS {
                let before = boot_time();
                let Ok(owner) = look(&mut looks, server, lock) else { continue };
                // A lock that is there counts from the answer on, one that is not up to the request.
                let owner = owner.map_or_else(|| "-".to_owned(), |owner| hash(&owner));
                let pace = pace.elapsed().as_millis();
                world.record.write(format_args!("sample {lock} {before} {pace} {owner}"));
            }
        }
    }
}

/// An error is a server that is gone, that is a replica, or that has another slot.
fn look(
    looks: &mut HashMap<SocketAddr, Connection>,
    server: &Server,
    lock: &str,
) -> RedisResult<Option<String>> {
    let connection = match looks.remove(&server.addr()) {
        Some(connection) => connection,
        None => connect(server)?,
    };
    let mut connection = connection;
    let role: (String,) = role(&mut connection)?;
    let owner = if role.0 == "master" {
        redis::cmd("GET").arg(lock).query(&mut connection)
    } else {
        Err((redis::ErrorKind::Client, "a replica").into())
    };
    if connection.is_open() {
        looks.insert(server.addr(), connection);
    }
    owner
}

fn role(connection: &mut Connection) -> RedisResult<(String,)> {
    let reply: Vec<redis::Value> = redis::cmd("ROLE").query(connection)?;
    let name = reply.into_iter().next().unwrap_or(redis::Value::Nil);
    Ok((redis::from_redis_value(name)?,))
}

fn connect(server: &Server) -> RedisResult<Connection> {
    let client = Client::open(server.url_with("harness", "harness", 0))?;
    let connection = client.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Without the mark of a waiter, and not the token itself.
fn hash(owner: &str) -> String {
    let mut hasher = DefaultHasher::new();
    owner.trim_start_matches(|char: char| !char.is_ascii_alphanumeric()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

const BETWEEN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(300);
