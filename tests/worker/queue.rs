//! One of fifty processes that take from one stock in Redis: `processes/queue.rs` starts them.
//!
//! `worker queue URL TASKS REQUESTS queued|spinning` prints that it is ready, waits for a line, lets
//! `TASKS` tasks make `REQUESTS` requests each, and prints how many requests got the lock, how often
//! they tried again, and how many gave up. A request takes one while more than ten are left: it reads
//! the stock, and writes back one less. Both are fenced: where the machine stalls for the first second of a hand-off, the
//! lock is lost, and the request begins again if a later holder has come.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockable_runtime::{FencingToken, LockError, LockGuard, Locker, fencing};
use lockable_tests::unless_busy;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, RedisResult};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub(crate) fn main(arguments: &[String]) {
    let [url, tasks, requests, kind] = arguments else { panic!("{arguments:?}") };
    let (tasks, requests) = (tasks.parse().unwrap(), requests.parse().unwrap());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let worker = runtime.block_on(Worker::open(url, kind == "queued"));
    println!("ready");
    io::stdin().read_line(&mut String::new()).unwrap();
    runtime.block_on(worker.work(tasks, requests));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counts = [&worker.served, &worker.retries, &worker.failures].map(count);
    println!("{}", counts.map(|count| count.to_string()).join(" "));
}

/// Many processes start at once, and the last ones wait long for a processor.
async fn locker(url: &str) -> Locker {
    let builder = Locker::builder().url(url).connect_deadline(LIMIT).command_deadline(LIMIT);
    builder.connect().await.unwrap()
}

struct Worker {
    locks: Locker,
    redis: MultiplexedConnection,
    is_queued: bool,
    served: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
}

impl Worker {
    async fn open(url: &str, is_queued: bool) -> Arc<Self> {
        let client = Client::open(url).unwrap();
        let limits = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(LIMIT))
            .set_response_timeout(Some(LIMIT));
        Arc::new(Self {
            locks: locker(url).await,
            redis: client.get_multiplexed_async_connection_with_config(&limits).await.unwrap(),
            is_queued,
            served: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    async fn work(self: &Arc<Self>, tasks: usize, requests: usize) {
        let mut all = JoinSet::new();
        for _ in 0..tasks {
            let worker = Arc::clone(self);
            all.spawn(async move {
                for _ in 0..requests {
                    worker.request().await;
                }
            });
        }
        all.join_all().await;
    }

    async fn request(&self) {
        loop {
            let guard = if self.is_queued { self.wait().await } else { self.spin().await };
            let Some(guard) = guard else {
                self.failures.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let taken = self.take_one(guard.lease().fencing_token()).await;
            let lost = guard.release().await.err();
            assert!(lost.as_ref().is_none_or(LockError::is_lost), "{lost:?}");
            match taken {
                Ok(()) => break,
                Err(error) => assert!(error.code() == Some("FENCED") && lost.is_some(), "{error}"),
            }
        }
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    async fn wait(&self) -> Option<LockGuard> {
        let outcome = self.locks.lock("stock").wait(PATIENCE).acquire().await;
        assert!(outcome.as_ref().err().is_none_or(LockError::is_wait_limit_reached), "{outcome:?}");
        outcome.ok()
    }

    #[expect(clippy::disallowed_methods, reason = "what others do is compared with")]
    async fn spin(&self) -> Option<LockGuard> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(guard) = unless_busy(self.locks.lock("stock").try_acquire().await) {
                return Some(guard);
            }
            self.retries.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(10)).await;
        }
        None
    }

    async fn take_one(&self, token: FencingToken) -> RedisResult<()> {
        let mut redis = self.redis.clone();
        let read = fenced("return redis.call('GET', KEYS[1])", token);
        let stock: i64 = read.query_async(&mut redis).await?;
        if stock > 10 {
            let mut write = fenced("return redis.call('SET', KEYS[1], ARGV[1])", token);
            write.arg(stock - 1).exec_async(&mut redis).await?;
        }
        Ok(())
    }
}

/// A script about the stock for the newest holder.
fn fenced(script: &str, token: FencingToken) -> Cmd {
    let mut eval = redis::cmd("EVAL");
    eval.arg(fencing::redis_script(script)).arg(2).arg("fence").arg("stock").arg(u64::from(token));
    eval
}

/// Far more than the whole load takes: no request should give up.
const PATIENCE: Duration = Duration::from_secs(300);

/// For every answer of the server.
const LIMIT: Duration = PATIENCE;
