//! A transfer changes two accounts: how does it lock both, without a deadlock?
//!
//! Three instances of a bank move money between six accounts, in both directions at the same time. Each transfer
//! holds the locks of its two accounts, and an audit holds those of all.
//!
//! In this folder, run it with `cargo run --example transfer`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep
//! the locks in Redis. Watch that every audit finds the same sum.

use std::error::Error;
use std::sync::{Arc, Mutex};

use lockable_runtime::{FencingToken, LockError, LockKey, Locker, distributed_lock, lock_key};
use tokio::task::JoinSet;

const ACCOUNTS: usize = 6;
const START: i64 = 100;
const TRANSFERS: usize = 60;

/// In place of a database: each row has its cents, and the token of its last writer.
type Rows = Mutex<[(i64, Option<FencingToken>); ACCOUNTS]>;

#[derive(Clone)]
struct Bank {
    locks: Locker,
    rows: Arc<Rows>,
}

impl Bank {
    /// The keys may be written in any order. Transfers from 1 to 2 and from 2 to 1 do not wait for each other in a
    /// circle.
    #[distributed_lock(
        keys = ["account:{from}", "account:{to}"],
        wait = "10s",
        locker = self.locks,
        guard = held
    )]
    async fn transfer(&self, from: usize, to: usize, cents: i64) -> Result<(), LockError> {
        let (giving, taking) = (self.read(from), self.read(to));
        // Without the locks, other transfers would change the rows here.
        tokio::task::yield_now().await;
        self.write(from, giving - cents, held[0].fencing_token());
        self.write(to, taking + cents, held[1].fencing_token());
        Ok(())
    }

    /// As many locks as there are accounts, which is known at run time.
    #[distributed_lock(keys = accounts, wait = "10s", locker = self.locks)]
    async fn sum(&self, accounts: Vec<LockKey>) -> Result<i64, LockError> {
        let mut sum = 0;
        for account in 0..ACCOUNTS {
            sum += self.read(account);
            tokio::task::yield_now().await;
        }
        Ok(sum)
    }

    fn read(&self, account: usize) -> i64 {
        self.rows.lock().unwrap()[account].0
    }

    /// As a database that rejects a writer whose token is smaller than the last one.
    fn write(&self, account: usize, cents: i64, token: FencingToken) {
        let row = &mut self.rows.lock().unwrap()[account];
        assert!(row.1.is_none_or(|last| last < token), "a writer that is too late");
        *row = (cents, Some(token));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://transfer".to_owned());
    let rows = Arc::new(Mutex::new([(START, None); ACCOUNTS]));
    let mut work = JoinSet::new();
    for instance in 0..3 {
        let bank = Bank { locks: Locker::connect(&url).await?, rows: Arc::clone(&rows) };
        for number in 0..TRANSFERS {
            let (from, step) = (number % ACCOUNTS, 1 + (number / ACCOUNTS + instance) % 5);
            let bank = bank.clone();
            let to = (from + step) % ACCOUNTS;
            work.spawn(async move { bank.transfer(from, to, 7).await.map(|()| None) });
        }
        let accounts: Result<Vec<_>, _> =
            (0..ACCOUNTS).map(|id| lock_key!("account:{id}")).collect();
        let accounts = accounts?;
        work.spawn(async move { bank.sum(accounts).await.map(Some) });
    }
    let outcomes = work.join_all().await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let audits: Vec<i64> = outcomes.into_iter().flatten().collect();
    println!("{} transfers; the audits found {audits:?} cents", 3 * TRANSFERS);
    assert_eq!(audits, [START * 6; 3]);
    Ok(())
}
