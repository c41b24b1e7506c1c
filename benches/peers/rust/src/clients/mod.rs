//! The crate `redis` as a contender of the bench `clients`: `<way> <url> <tags> <tags>`, with a URL as ours has it.

mod cluster;
mod sentinel;

use std::time::Duration;

use redis::RedisError;
use redis::aio::ConnectionLike;

use crate::load::{self, DEADLINE, LEASE, Tags};
use crate::worker::{Flavour, run};

/// On the runtime that `#[tokio::main]` makes.
pub fn work(arguments: &[String]) {
    let [way, url, concerned, others] = arguments else {
        panic!("usage: clients <way> <url> <tags> <tags>");
    };
    let (way, tags) = (Way::of(way), Tags::parse([concerned, others]));
    let (scheme, place) = url.split_once("://").expect("a URL");
    run(Flavour::MultiThread, async {
        match (scheme, place.split_once('/')) {
            ("redis-cluster", None) => {
                load::serve(cluster::client(hosts(place), way).await, &tags).await;
            }
            ("redis-sentinel", Some((place, name))) => {
                load::serve(sentinel::client(hosts(place), name, way), &tags).await;
            }
            _ => panic!("no such URL: {url}"),
        }
    });
}

fn hosts(text: &str) -> Vec<String> {
    text.split(',').map(|host| format!("redis://{host}")).collect()
}

/// How the client is set up.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// Its defaults, and the deadline that ours has.
    Defaults,
    /// A shorter wait for each reply within the same deadline, and a shorter first pause before a retry.
    Tuned,
}

impl Way {
    fn of(name: &str) -> Self {
        if name == "tuned" { Self::Tuned } else { Self::Defaults }
    }

    /// The longest wait for a reply.
    pub fn response_timeout(self) -> Duration {
        if self == Self::Tuned { DEADLINE / 2 } else { DEADLINE }
    }
}

/// `SET NX PX`. The value is the key itself: no other caller has that key.
async fn set(connection: &mut impl ConnectionLike, key: &str) -> Result<(), String> {
    let mut set = redis::cmd("SET");
    set.arg(key).arg(key).arg("NX").arg("PX").arg(LEASE.as_millis() as u64);
    let reply: Option<String> = set.query_async(connection).await.map_err(word)?;
    reply.map(drop).ok_or_else(|| "Busy".to_owned())
}

/// Compares and deletes.
async fn delete(connection: &mut impl ConnectionLike, key: &str) -> Result<(), String> {
    // No digest: a replica that becomes the master does not know the script.
    let mut eval = redis::cmd("EVAL");
    eval.arg(DELETE).arg(1).arg(key).arg(key);
    let reply = eval.query_async::<u64>(connection).await;
    match reply.map_err(|error| format!("{} at the release", word(error)))? {
        0 => Err("Lost at the release".to_owned()),
        _ => Ok(()),
    }
}

fn word(error: RedisError) -> String {
    format!("{:?}", error.kind())
}

const DELETE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
