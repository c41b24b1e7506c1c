//! The life of one lease under each option, as the library times it: in memory, with a paused clock.

use std::fmt::Write;
use std::time::Duration;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, LockRequest};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

pub(crate) fn record() -> String {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let lanes = async {
        let mut data = "axis 26000 5000\n".to_owned();
        for (number, life) in LIVES.into_iter().enumerate() {
            data += &life.record(&format!("job:{number}")).await;
        }
        data
    };
    runtime.expect("a runtime").block_on(lanes)
}

/// A lock with these options, and what happens to it.
struct Life {
    title: &'static str,
    options: fn(LockRequest) -> LockRequest,
    /// How long the body would run.
    work: u64,
    /// When the lock is deleted, if it is.
    deleted: Option<u64>,
    /// What the body's end is, after the moment.
    end: &'static str,
}

const LIVES: [Life; 5] = [
    Life {
        title: "expire = 10",
        options: |lock| lock.expire(TEN),
        work: 60_000,
        deleted: None,
        end: "lost: the lease is over, so the body is stopped, and the lock released",
    },
    Life {
        title: "expire = 10, renew",
        options: |lock| lock.expire(TEN).renew(),
        work: 23_000,
        deleted: None,
        end: "the body has ended: released",
    },
    Life {
        title: "expire = 10, renew, max_hold = 20",
        options: |lock| lock.expire(TEN).renew().max_hold(Duration::from_secs(20)),
        work: 60_000,
        deleted: None,
        end: "max_hold: stopped under the lock, then released",
    },
    Life {
        title: "expire = 10, min_hold = 8",
        options: |lock| lock.expire(TEN).min_hold(Duration::from_secs(8)),
        work: 3_000,
        deleted: None,
        end: "the body has ended; the lock stays taken until min_hold is over",
    },
    Life {
        title: "expire = 10, renew",
        options: |lock| lock.expire(TEN).renew(),
        work: 60_000,
        deleted: Some(14_000),
        end: "lost: the lock was deleted, and the body is stopped at once",
    },
];

impl Life {
    /// The body sees its lease, and another caller the lock.
    async fn record(&self, key: &str) -> String {
        let locks = TestLocks::new();
        let start = Instant::now();
        let (held, free, ()) = tokio::join!(
            self.hold(&locks, key, start),
            is_free(&locks, key, start),
            self.delete(&locks, key)
        );
        let (end, renewals) = held;
        let mut lane = format!("lane {}\nspan taken 0 {free}\nspan body 0 {end}\n", self.title);
        for renewal in renewals {
            writeln!(lane, "mark renewed {renewal}").expect("memory");
        }
        if let Some(at) = self.deleted {
            writeln!(lane, "mark lost {at}").expect("memory");
        }
        lane + &format!("note {end} {}\n", self.end)
    }

    /// When the body ended, and when its lease was renewed.
    async fn hold(&self, locks: &TestLocks, key: &str, start: Instant) -> (u64, Vec<u64>) {
        let request = (self.options)(locks.locker().lock(key));
        let guard = request.acquire().await.expect("a free lock");
        let (mut renewals, mut left) = (Vec::new(), guard.lease().remaining());
        let body = async {
            while since(start) < self.work {
                sleep(STEP).await;
                let now = guard.lease().remaining();
                if now > left {
                    renewals.push(since(start));
                }
                left = now;
            }
        };
        let stopped = async { drop::<LockError>(guard.lease().lost().await) };
        tokio::select! {
            biased;
            () = stopped => {}
            () = body => {}
        }
        let end = since(start);
        // It may be over.
        drop(guard.release().await);
        (end, renewals)
    }

    async fn delete(&self, locks: &TestLocks, key: &str) {
        if let Some(at) = self.deleted {
            sleep(Duration::from_millis(at)).await;
            locks.lose(key);
        }
    }
}

/// When another caller gets the lock.
async fn is_free(locks: &TestLocks, key: &str, start: Instant) -> u64 {
    loop {
        sleep(STEP).await;
        match locks.locker().lock(key).try_acquire().await {
            Err(error) => assert!(error.is_busy(), "{error}"),
            Ok(guard) => {
                let at = since(start);
                guard.release().await.expect("memory answers");
                return at;
            }
        }
    }
}

/// In steps, because the clock of the runtime is a millisecond apart from that of a lease.
fn since(start: Instant) -> u64 {
    let millis = u64::try_from(start.elapsed().as_millis()).expect("seconds");
    millis / 10 * 10
}

const TEN: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(10);
