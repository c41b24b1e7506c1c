//! One of fifty processes that take from one stock in Redis: `processes/queue.rs` starts them.
//!
//! `queue_worker URL TASKS REQUESTS` prints that it is ready, waits for a line, lets `TASKS` tasks make
//! `REQUESTS` requests each, and prints that it is done. A request waits for the lock, reads the stock, and
//! writes back one less.

use std::env;
use std::io;
use std::time::Duration;

use lockable_runtime::Locker;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, tasks, requests] = &arguments[..] else { panic!("{arguments:?}") };
    let (tasks, requests) = (tasks.parse().unwrap(), requests.parse().unwrap());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let worker = runtime.block_on(Worker::open(url));
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    runtime.block_on(worker.work(tasks, requests));
    println!("done");
}

#[derive(Clone)]
struct Worker {
    locks: Locker,
    redis: MultiplexedConnection,
}

impl Worker {
    /// Many processes start at once, and the last ones wait long for a processor.
    async fn open(url: &str) -> Self {
        let locker = Locker::builder().url(url).connect_deadline(PATIENCE);
        let limits = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(PATIENCE))
            .set_response_timeout(Some(PATIENCE));
        let client = Client::open(url).unwrap();
        Self {
            locks: locker.command_deadline(PATIENCE).connect().await.unwrap(),
            redis: client.get_multiplexed_async_connection_with_config(&limits).await.unwrap(),
        }
    }

    async fn work(&self, tasks: usize, requests: usize) {
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            let worker = self.clone();
            all.spawn(async move {
                for _ in 0..requests {
                    worker.locks.lock("stock").run(worker.take_one()).await.unwrap();
                }
            });
        }
        all.join_all().await;
    }

    async fn take_one(&self) {
        let mut redis = self.redis.clone();
        let stock: i64 = redis::cmd("GET").arg("stock").query_async(&mut redis).await.unwrap();
        redis::cmd("SET").arg("stock").arg(stock - 1).exec_async(&mut redis).await.unwrap();
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
