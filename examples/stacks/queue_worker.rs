//! A queue delivers a message twice: how do two workers handle it once?
//!
//! Each message has a lock. A worker that gets the second delivery waits for the first one, and then finds the message
//! done, by `once`; had the first worker failed or died, it would handle the message itself. In both cases it may take the
//! message off its list. After an error, also one of the lock, the message goes back to the queue.
//!
//! Run it with `LOCKABLE_URL=redis://127.0.0.1:6379 cargo run --bin queue_worker`; its list is on the same server. Watch
//! for the invoice that both workers get, and for the one that fails at first.

// Source, for a list of messages under way: https://redis.io/docs/latest/commands/lmove/

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;

static SENT: AtomicU32 = AtomicU32::new(0);

/// One worker, which would be a process.
struct Worker {
    name: &'static str,
    locks: Locker,
    queue: MultiplexedConnection,
    waiting: String,
    /// What this worker has taken and not finished: after its death, another moves that back.
    taken: String,
}

/// The first try to send it fails.
const FLAKY: &str = "invoice:13";

static FLAKY_TRIES: AtomicU32 = AtomicU32::new(0);

impl Worker {
    async fn new(name: &'static str, url: &str, waiting: &str) -> Result<Self, Box<dyn Error>> {
        let (waiting, taken) = (waiting.to_owned(), format!("{waiting}:{name}"));
        let queue = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        Ok(Self { name, locks: Locker::connect(url).await?, queue, waiting, taken })
    }

    /// In production `once` is longer than the queue may take to deliver a message again: an hour, a day.
    #[distributed_lock(
        key = "{queue}:{message}", expire = 10, renew, wait = "30s", once = "1m", locker = self.locks
    )]
    async fn handle(&self, queue: &str, message: &str) -> Result<(), Box<dyn Error>> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if message == FLAKY && FLAKY_TRIES.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err("the mail server is away".into());
        }
        SENT.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Until the queue is empty.
    async fn work(mut self) -> Result<(), Box<dyn Error>> {
        while let Some(message) = self.take().await? {
            match self.handle(&self.waiting, &message).await {
                Ok(()) => println!("{}: {message} is handled", self.name),
                Err(error) if is_done(&*error) => println!("{}: {message} was done", self.name),
                Err(error) => {
                    println!("{}: {message} goes back: {error}", self.name);
                    self.queue.rpush::<_, _, ()>(&self.waiting, &message).await?;
                }
            }
            self.queue.lrem::<_, _, ()>(&self.taken, 1, &message).await?;
        }
        Ok(())
    }

    /// Moves the next message: it is in one of the two lists at any time. A worker that stays uses `BLMOVE`.
    async fn take(&mut self) -> redis::RedisResult<Option<String>> {
        let (left, right) = (redis::Direction::Left, redis::Direction::Right);
        self.queue.lmove(&self.waiting, &self.taken, left, right).await
    }
}

fn is_done(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(LockError::is_done)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Ok(url) = std::env::var("LOCKABLE_URL") else {
        println!(
            "LOCKABLE_URL is not set. With it, this program puts a message into a list of Redis twice, and two"
        );
        println!("workers take it: one handles it, and the other waits and finds it done.");
        return Ok(());
    };
    // With a part that differs, so that the example can run again at once.
    let waiting = format!("invoices-{}", std::process::id());
    let mut one = Worker::new("worker 1", &url, &waiting).await?;
    let two = Worker::new("worker 2", &url, &waiting).await?;
    // The producer had no answer the first time, so it sent one again.
    let messages = ["invoice:12", "invoice:12", FLAKY, "invoice:14"];
    one.queue.rpush::<_, _, ()>(&waiting, &messages[..]).await?;

    tokio::try_join!(one.work(), two.work())?;
    assert_eq!(SENT.load(Ordering::Relaxed), 3);
    println!("{} messages, {} invoices sent", messages.len(), SENT.load(Ordering::Relaxed));
    lockable_runtime::shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
