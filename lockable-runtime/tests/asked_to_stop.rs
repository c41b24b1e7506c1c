//! A service stops when an operator asks it to, also one that was built without the feature `admin`.
//!
//! Goal: the feature adds only the side that asks. Method: a plain client writes the message of an operator, as DESIGN.md
//! describes it, so this test needs no feature but `redis`; `cargo xtask lint` runs it without any other.
#![cfg(all(unix, feature = "redis"))]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockRequest, Locker};
use tokio::time::{interval, timeout};

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn on_redis() {
    let server = Server::start();
    let locker =
        Locker::connect(&format!("redis+unix://{}", server.socket.display())).await.unwrap();
    let body = tokio::spawn(hang(locker.lock("order:7")));
    let mut operator = server.connect().await;
    let mut pause = interval(Duration::from_millis(50));
    let asks = async {
        while server_says(&mut operator, &["EXISTS", "disLock:order:7"]).await == 0 {
            pause.tick().await;
        }
        let owner: String =
            redis::cmd("GET").arg("disLock:order:7").query_async(&mut operator).await.unwrap();
        let channel = format!("lockable:revoke:{}", owner.get(..6).unwrap());
        let message = format!("revoke\n{owner}\nstuck\ndisLock:order:7");
        while server_says(&mut operator, &["PUBLISH", &channel, &message]).await == 0 {
            pause.tick().await;
        }
    };
    timeout(LIMIT, asks).await.unwrap();
    assert_eq!(timeout(LIMIT, body).await.unwrap().unwrap(), (true, true));
    assert_eq!(server_says(&mut operator, &["EXISTS", "disLock:order:7"]).await, 0);
}

#[tokio::test]
async fn in_memory() {
    let locks = TestLocks::new();
    let body = tokio::spawn(hang(locks.locker().lock("order:7")));
    while locks.holder("order:7").is_none() {
        tokio::task::yield_now().await;
    }
    locks.revoke("order:7", "stuck");
    assert_eq!(timeout(LIMIT, body).await.unwrap().unwrap(), (true, true));
}

/// Holds a lock for ever: whether an operator ended that, and gave a reason.
async fn hang(request: LockRequest) -> (bool, bool) {
    let error = request.renew().run(std::future::pending::<()>()).await.unwrap_err();
    (error.is_revoked(), error.to_string().contains("stuck"))
}

async fn server_says(operator: &mut redis::aio::MultiplexedConnection, command: &[&str]) -> i64 {
    let mut sent = redis::Cmd::new();
    sent.arg(command).query_async(operator).await.unwrap()
}

/// A server of this test's own, which listens on a socket in a folder of its own.
struct Server {
    process: Child,
    socket: PathBuf,
}

impl Server {
    fn start() -> Self {
        let folder = env::temp_dir().join(format!("lockable-asked-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("redis.sock");
        let program =
            env::var("LOCKABLE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
        let mut command = Command::new(program);
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
        let mut process = command.current_dir(&folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_ready =
            lines.by_ref().map_while(Result::ok).any(|line| line.contains("ready to accept"));
        assert!(is_ready, "redis-server does not run");
        // The rest of its lines, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, socket }
    }

    async fn connect(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(format!("unix://{}", self.socket.display())).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        fs::remove_dir_all(self.socket.parent().unwrap()).unwrap();
    }
}
