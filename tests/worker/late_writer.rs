//! A holder that writes without a look at its lock: `faults/fencing/pause.rs` starts it.
//!
//! `worker late_writer URL KEY [--without-fence]` acquires the lock, prints its fencing token, waits for a line, writes, and
//! prints `done` or the error of Redis.

use std::io;
use std::time::Duration;

use lockable_runtime::{FencingToken, LockGuard, Locker, fencing};
use redis::{Client, Cmd, Connection};

pub(crate) fn main(arguments: &[String]) {
    let [url, key, rest @ ..] = arguments else { panic!("{arguments:?}") };
    let mut connection = Client::open(url.as_str()).unwrap().get_connection().unwrap();
    let guard = hold(url, key);
    println!("{}", guard.lease().fencing_token());
    io::stdin().read_line(&mut String::new()).unwrap();
    let write = if rest.is_empty() { guarded(guard.lease().fencing_token()) } else { unguarded() };
    println!("{}", outcome(&write, &mut connection));
    // Another holder has the lock by now, so there is nothing to release.
    drop(guard);
}

fn hold(url: &str, key: &str) -> LockGuard {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let locker = Locker::builder().url(url).command_deadline(LONG).connect_deadline(LONG);
        let locker = locker.connect().await.unwrap();
        locker.lock(key).acquire().await.unwrap()
    })
}

fn guarded(token: FencingToken) -> Cmd {
    let script = fencing::redis_script("return redis.call('SET', KEYS[1], ARGV[1])");
    let mut eval = redis::cmd("EVAL");
    eval.arg(script).arg(2).arg("stock:{tea}:fence").arg("stock:{tea}");
    eval.arg(u64::from(token)).arg("late");
    eval
}

fn unguarded() -> Cmd {
    let mut set = redis::cmd("SET");
    set.arg("stock:{tea}").arg("late");
    set
}

fn outcome(write: &Cmd, connection: &mut Connection) -> String {
    match write.exec(connection) {
        Ok(()) => "done".to_owned(),
        Err(error) => [error.code(), error.detail()].map(Option::unwrap_or_default).join(" "),
    }
}

/// For an answer that a machine may delay.
const LONG: Duration = Duration::from_secs(60);
