//! How do data in Redis refuse the write of a holder that is too late?
//!
//! In this folder, run it with `LOCKABLE_URL=redis://127.0.0.1:6379 cargo run --example fencing_redis`. Watch for
//! the last write: its holder still believes that it holds the lock.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{FencingToken, Locker, distributed_lock, fencing};
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisError};

/// The data, and beside them, on the same slot of a cluster, the newest token seen.
const BALANCE: &str = "account:{7}:balance";
const FENCE: &str = "account:{7}:fence";

/// One instance of the service.
struct Bank {
    locks: Locker,
    redis: MultiplexedConnection,
    /// An ordinary script under the guard; made once.
    write: String,
}

impl Bank {
    async fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        let redis = Client::open(url)?.get_multiplexed_async_connection().await?;
        let write = fencing::redis_script("return redis.call('SET', KEYS[1], ARGV[1])");
        Ok(Self { locks: Locker::connect(url).await?, redis, write })
    }

    /// The ordinary way: the body runs under the lock, and its write carries the token.
    #[distributed_lock(key = "account:7", locker = self.locks, guard = lock)]
    async fn set_balance(&self, balance: i64) -> Result<(), Box<dyn Error>> {
        Ok(self.write(balance, lock.fencing_token()).await?)
    }

    /// The record and the token come before the script's own keys and arguments.
    async fn write(&self, balance: i64, token: FencingToken) -> Result<(), RedisError> {
        let mut eval = redis::cmd("EVAL");
        eval.arg(&self.write).arg(2).arg(FENCE).arg(BALANCE);
        eval.arg(u64::from(token)).arg(balance);
        eval.exec_async(&mut self.redis.clone()).await
    }

    async fn balance(&self) -> Result<i64, RedisError> {
        redis::cmd("GET").arg(BALANCE).query_async(&mut self.redis.clone()).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").ok();
    let Some(url) = url.filter(|url| !url.starts_with("memory://")) else {
        println!("the data of this example are in Redis: set LOCKABLE_URL to a server of yours");
        return Ok(());
    };
    let bank = Bank::open(&url).await?;

    // A holder by hand, whose code nothing stops. It takes longer than its lease.
    let request = bank.locks.lock("account:7").expire(Duration::from_millis(200));
    let late = request.acquire().await?;
    println!("late holder:  token {}, thinking", late.lease().fencing_token());
    tokio::time::sleep(Duration::from_millis(300)).await;

    bank.set_balance(250).await?;
    println!("next holder:  balance 250 written");

    let refused = bank.write(100, late.lease().fencing_token()).await;
    let refused = refused.expect_err("an older token is refused");
    assert_eq!(refused.code(), Some("FENCED"), "{refused}");
    println!("late holder:  {}", refused.detail().unwrap_or_default());

    assert_eq!(bank.balance().await?, 250);
    println!("the balance is 250");
    Ok(())
}
