//! One of several processes that sell from one stock in Redis: `processes/main.rs` starts them.
//!
//! `stock_worker URL TASKS SALES [--without-lock]` prints that it is ready, waits for a line, and
//! then lets `TASKS` tasks make `SALES` sales each. A sale reads the stock, takes its time, and
//! writes back what it read less one.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::BuildHasher;
use std::io;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock, install};
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, tasks, sales, rest @ ..] = &arguments[..] else { panic!("{arguments:?}") };
    let (tasks, sales) = (tasks.parse().unwrap(), sales.parse().unwrap());
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let shop = runtime.block_on(Shop::open(url));
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    let work = sell_all(&shop, tasks, sales, !rest.contains(&"--without-lock".to_owned()));
    runtime.block_on(async { timeout(LIMIT, work).await }).expect("the sales end in time");
    println!("done");
}

async fn sell_all(shop: &Shop, tasks: usize, sales: usize, is_locked: bool) {
    let mut work = JoinSet::new();
    for _ in 0..tasks {
        let shop = shop.clone();
        work.spawn(async move {
            for _ in 0..sales {
                if is_locked { shop.sell_in_turn().await } else { shop.take_one().await.unwrap() }
            }
        });
    }
    work.join_all().await;
}

/// More than a hundred processes start at once, and the last ones wait long for a processor.
async fn locker(url: &str) -> Locker {
    let builder = Locker::builder().url(url).connect_deadline(Duration::from_secs(30));
    builder.connect().await.unwrap()
}

#[derive(Clone)]
struct Shop {
    redis: MultiplexedConnection,
}

impl Shop {
    async fn open(url: &str) -> Self {
        install(locker(url).await).unwrap();
        let client = Client::open(url).unwrap();
        Self { redis: client.get_multiplexed_async_connection().await.unwrap() }
    }

    /// Tries again while others sell.
    async fn sell_in_turn(&self) {
        while let Err(error) = self.sell("tea").await {
            assert!(error.is_busy(), "{error:?}");
            pause().await;
        }
    }

    #[distributed_lock(key = "stock:{sku}", guard = lock)]
    async fn sell(&self, sku: &str) -> Result<(), SaleError> {
        self.note_sale(&lock).await?;
        Ok(self.take_one().await?)
    }

    /// Leaves the section's fencing token behind those of the sections before it.
    async fn note_sale(&self, lock: &Lease) -> Result<(), RedisError> {
        let token = u64::from(lock.fencing_token());
        redis::cmd("RPUSH").arg("tokens").arg(token).exec_async(&mut self.redis.clone()).await
    }

    #[expect(clippy::disallowed_methods, reason = "a sale that takes its time is the subject")]
    async fn take_one(&self) -> Result<(), RedisError> {
        let mut redis = self.redis.clone();
        let stock: i64 = redis::cmd("GET").arg("stock").query_async(&mut redis).await?;
        sleep(SALE).await;
        redis::cmd("SET").arg("stock").arg(stock - 1).exec_async(&mut redis).await
    }
}

#[derive(Debug)]
enum SaleError {
    Lock(LockError),
    Redis(#[expect(dead_code, reason = "for the message of a panic")] RedisError),
}

impl SaleError {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Lock(error) if error.is_busy())
    }
}

impl From<LockError> for SaleError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

impl From<RedisError> for SaleError {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

/// A random while, so that the tasks of all processes do not keep step.
#[expect(clippy::disallowed_methods, reason = "the attribute has nothing yet that waits")]
async fn pause() {
    let random = RandomState::new().hash_one(());
    sleep(Duration::from_micros(500 + random % 8_000)).await;
}

/// Long beside the commands around it: others come in between, if they may.
const SALE: Duration = Duration::from_millis(2);

/// Shorter than the patience of the test.
const LIMIT: Duration = Duration::from_secs(50);
