//! How does a row in PostgreSQL or SQLite refuse the write of a holder that is too late?
//!
//! Run it with `cargo run --example fencing_sql`; it needs no set-up, because the database is SQLite
//! in memory. Watch for the last write: its holder still believes that it holds the lock.
//!
//! The statement is the same in PostgreSQL, where the column is a `BIGINT NOT NULL`:
//!
//! ```sql
//! INSERT INTO account (id, balance, fence) VALUES ($1, $2, $3)
//! ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, fence = excluded.fence
//! WHERE account.fence <= excluded.fence
//! ```

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{FencingToken, Locker, distributed_lock};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

const SCHEMA: &str = "CREATE TABLE account (
    id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL)";

const WRITE: &str = "INSERT INTO account (id, balance, fence) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, fence = excluded.fence
    WHERE account.fence <= excluded.fence";

/// One instance of the service.
struct Bank {
    locks: Locker,
    rows: SqlitePool,
}

impl Bank {
    /// The ordinary way: the body runs under the lock, and its write carries the token.
    #[distributed_lock(key = "account:{id}", locker = self.locks, guard = lock)]
    async fn set_balance(&self, id: i64, balance: i64) -> Result<bool, Box<dyn Error>> {
        Ok(self.write(id, balance, lock.fencing_token()).await?)
    }

    /// `false` when it was refused: a holder with a newer token has written meanwhile.
    async fn write(&self, id: i64, balance: i64, token: FencingToken) -> sqlx::Result<bool> {
        let write = sqlx::query(WRITE).bind(id).bind(balance).bind(token.as_i64());
        Ok(write.execute(&self.rows).await?.rows_affected() > 0)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    // Each connection would have a database of its own in memory.
    let rows = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::query(SCHEMA).execute(&rows).await?;
    let bank = Bank { locks: Locker::connect(&url).await?, rows };

    // A holder by hand, whose code nothing stops. It takes longer than its lease.
    let request = bank.locks.lock("account:7").expire(Duration::from_millis(200));
    let late = request.acquire().await?;
    println!("late holder:  token {}, thinking", late.fencing_token());
    tokio::time::sleep(Duration::from_millis(300)).await;

    assert!(bank.set_balance(7, 250).await?);
    println!("next holder:  balance 250 written");

    assert!(!bank.write(7, 100, late.fencing_token()).await?);
    println!("late holder:  balance 100 refused");

    let balance = sqlx::query_scalar("SELECT balance FROM account WHERE id = 7");
    let balance: i64 = balance.fetch_one(&bank.rows).await?;
    assert_eq!(balance, 250);
    println!("the balance is {balance}");
    Ok(())
}
