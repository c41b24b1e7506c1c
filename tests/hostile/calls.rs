//! What lockers are called for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockable_runtime::{Lease, LockError, Locker};
use lockable_tests::{Admin, Dice, wait};
use tokio::time::{sleep, timeout};

use crate::board::Board;

/// One task that calls.
pub(crate) struct Caller<'a> {
    pub(crate) locker: &'a Locker,
    pub(crate) admin: &'a Admin,
    pub(crate) board: &'a Board,
    pub(crate) dice: Dice,
    /// What the names of its locks begin with: a hash tag.
    pub(crate) prefix: &'a str,
    /// Whether nothing is garbled, so that nothing but a wait limit may end a call.
    pub(crate) is_calm: bool,
}

/// What became of calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) held: u64,
    /// Those of the locker that no stub node is before.
    pub(crate) beside: u64,
    pub(crate) failed: u64,
}

/// The most that a call waits for a lock.
const WAIT: Duration = Duration::from_secs(1);

impl Caller<'_> {
    /// Calls so often, one after the other.
    pub(crate) async fn run(mut self, count: u64) -> Ended {
        let mut ended = Ended::default();
        for _ in 0..count {
            match wait::ends(self.call()).await {
                Ok(held) => ended.held += held,
                Err(error) => {
                    ended.failed += 1;
                    if self.is_calm && !error.is_wait_limit_reached() {
                        self.board.wrong(format!("a call failed: {error}"));
                    }
                }
            }
        }
        ended
    }

    /// Holds the locks most of the time, so that who has one by mistake has it beside this holder. Gives how often.
    pub(crate) async fn hold_until(mut self, is_over: &AtomicBool) -> u64 {
        let mut count = 0;
        while !is_over.load(Ordering::Acquire) {
            let request = self.locker.lock(self.key()).wait(WAIT);
            let Ok(guard) = request.acquire().await else { continue };
            let entry = self.board.enter(self.admin, guard.lease(), 1);
            pause(self.dice.millis(5..60)).await;
            drop(entry);
            count += u64::from(guard.release().await.is_ok());
        }
        count
    }

    /// One call; returns how many locks it held.
    async fn call(&mut self) -> Result<u64, LockError> {
        match self.dice.below(16) {
            0..=4 => self.waits().await,
            5 | 6 => self.tries().await,
            7 => self.renews().await,
            8 => self.is_dropped().await,
            9 => self.holds_several().await,
            10 | 11 => self.holds_a_permit().await,
            12 => self.holds_all_permits().await,
            13 => self.looks().await,
            14 => self.lists().await,
            _ => self.extends().await,
        }
    }

    fn key(&mut self) -> String {
        format!("{}{}", self.prefix, self.dice.pick(&["a", "b"]))
    }

    async fn waits(&mut self) -> Result<u64, LockError> {
        let request = self.locker.lock(self.key()).wait(WAIT);
        let request = if self.dice.is_one_of(4) { request.fair() } else { request };
        let request = if self.dice.is_one_of(4) { request.min_hold(HOLD) } else { request };
        let guard = request.acquire().await?;
        self.hold(guard.lease(), 1).await;
        guard.release().await.map(|()| 1)
    }

    async fn tries(&mut self) -> Result<u64, LockError> {
        let guard = match self.locker.lock(self.key()).try_acquire().await {
            Err(error) if error.is_busy() => return Ok(0),
            outcome => outcome?,
        };
        self.hold(guard.lease(), 1).await;
        // The background releases it.
        drop(guard);
        Ok(1)
    }

    async fn renews(&mut self) -> Result<u64, LockError> {
        let request = self.locker.lock(self.key()).wait(WAIT).renew();
        // A machine that stands still for so long loses it.
        let request = if self.is_calm { request } else { request.expire(20 * HOLD) };
        let guard = request.acquire().await?;
        for _ in 0..8 {
            self.hold(guard.lease(), 1).await;
        }
        guard.release().await.map(|()| 1)
    }

    async fn extends(&mut self) -> Result<u64, LockError> {
        let guard = self.locker.lock(self.key()).wait(WAIT).acquire().await?;
        let extended = guard.lease().extend(LEASE).await;
        self.hold(guard.lease(), 1).await;
        guard.release().await.and(extended).map(|()| 1)
    }

    async fn is_dropped(&mut self) -> Result<u64, LockError> {
        let after = self.dice.millis(1..40);
        match timeout(after, self.waits()).await {
            Ok(ended) => ended,
            Err(_) => Ok(0),
        }
    }

    async fn holds_several(&mut self) -> Result<u64, LockError> {
        let keys = ["a", "b"].map(|name| format!("{}{name}", self.prefix));
        let locks = self.locker.lock_all(keys).wait(WAIT).acquire().await?;
        for lease in locks.leases() {
            self.hold(lease, 1).await;
        }
        locks.release().await.map(|()| 2)
    }

    async fn holds_a_permit(&mut self) -> Result<u64, LockError> {
        let key = format!("{}p", self.prefix);
        let guard = self.locker.lock(key).permits(2).wait(WAIT).acquire().await?;
        self.hold(guard.lease(), 2).await;
        guard.release().await.map(|()| 1)
    }

    async fn holds_all_permits(&mut self) -> Result<u64, LockError> {
        let key = format!("{}p", self.prefix);
        let locks = self.locker.lock(key).all_permits(2).wait(WAIT).acquire().await?;
        pause(HOLD).await;
        locks.release().await.map(|()| 2)
    }

    async fn looks(&mut self) -> Result<u64, LockError> {
        let key = self.key();
        self.locker.inspect(&key).await?;
        let admin = self.locker.admin();
        admin.holder(&key).await?;
        admin.queue(&key).await?;
        Ok(0)
    }

    async fn lists(&mut self) -> Result<u64, LockError> {
        let admin = self.locker.admin();
        admin.clock_difference().await?;
        admin.processes().await?;
        admin.count().await?;
        let mut locks = admin.locks();
        while let Some(lock) = locks.next().await {
            lock?;
        }
        Ok(0)
    }

    async fn hold(&mut self, lease: &Lease, most: usize) {
        let _entry = self.board.enter(self.admin, lease, most);
        pause(self.dice.millis(0..5)).await;
    }
}

const HOLD: Duration = Duration::from_millis(10);

/// The leases of the locker behind the stub node: what garbled replies leave behind is over then.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

#[expect(clippy::disallowed_methods, reason = "how long a lock is held is real time")]
pub(crate) async fn pause(duration: Duration) {
    sleep(duration).await;
}

impl Ended {
    pub(crate) fn add(&mut self, other: Self) {
        self.held += other.held;
        self.beside += other.beside;
        self.failed += other.failed;
    }
}
