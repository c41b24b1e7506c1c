//! One of several processes that sell from one stock in Redis: `processes/main.rs` starts them.
//!
//! `worker stock URL TASKS SALES [--without-lock]` prints that it is ready, waits for a line, and
//! then lets `TASKS` tasks make `SALES` sales each. A sale reads the stock, takes its time, and
//! writes back what it read less one.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::BuildHasher;
use std::io;
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker, distributed_lock, install};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub(crate) fn main(arguments: &[String]) {
    let [url, tasks, sales, rest @ ..] = arguments else { panic!("{arguments:?}") };
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

#[derive(Clone)]
struct Shop {
    redis: MultiplexedConnection,
}

impl Shop {
    /// Many processes start at once, and the last ones wait long for a processor.
    async fn open(url: &str) -> Self {
        let locker = Locker::builder().url(url).connect_deadline(LIMIT).command_deadline(LIMIT);
        install(locker.connect().await.unwrap()).unwrap();
        let limits = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(LIMIT))
            .set_response_timeout(Some(LIMIT));
        let client = Client::open(url).unwrap();
        Self { redis: client.get_multiplexed_async_connection_with_config(&limits).await.unwrap() }
    }

    /// Tries again while others sell.
    async fn sell_in_turn(&self) {
        while let Err(error) = self.sell("tea").await {
            assert!(error.downcast_ref().is_some_and(LockError::is_busy), "{error:?}");
            pause().await;
        }
    }

    #[distributed_lock(key = "stock:{sku}", expire = 300, guard = lock)]
    async fn sell(&self, sku: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
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

/// A random while, so that the tasks of all processes do not keep step.
#[expect(clippy::disallowed_methods, reason = "a call that does not wait tries again")]
async fn pause() {
    let random = RandomState::new().hash_one(());
    sleep(Duration::from_micros(500 + random % 8_000)).await;
}

/// Long beside the commands around it: others come in between, if they may.
const SALE: Duration = Duration::from_millis(2);

/// Shorter than the patience of the test.
const LIMIT: Duration = Duration::from_secs(110);
