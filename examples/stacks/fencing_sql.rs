//! How does a database transaction run under a lock, and how does the row refuse a holder that is too late?
//!
//! The lock is outside and the transaction inside: the commit is the last step of the body, so the next holder
//! reads what this one wrote. The first statement of the transaction has the fencing token in its `WHERE`
//! clause. It changes no row if a newer holder was there before; otherwise it locks the row until the commit.
//!
//! In this folder, run it with `cargo run --bin fencing_sql`; it needs no server, because the database is
//! SQLite in memory. Watch for the last withdrawal: its holder still believes that it holds the lock.
//!
//! The statements are the same in PostgreSQL, where the columns are `BIGINT`.

// Source, for a transaction that is dropped: https://docs.rs/sqlx/0.9.0/sqlx/struct.Transaction.html

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{FencingToken, Locker, distributed_lock};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

const SCHEMA: &str = "
    CREATE TABLE account (
        id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, fence INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE withdrawal (account INTEGER NOT NULL, amount INTEGER NOT NULL);
    INSERT INTO account (id, balance) VALUES (7, 100)";

const CLAIM: &str = "UPDATE account SET fence = $2 WHERE id = $1 AND fence <= $2 RETURNING balance";

/// One instance of the service.
struct Bank {
    locks: Locker,
    rows: SqlitePool,
}

impl Bank {
    /// Gives the new balance. A body that is stopped drops its transaction, which rolls back.
    #[distributed_lock(key = "account:{id}", wait = "3s", locker = self.locks, guard = lock)]
    async fn withdraw(&self, id: i64, amount: i64) -> Result<Option<i64>, Box<dyn Error>> {
        Ok(self.transaction(id, amount, lock.fencing_token()).await?)
    }

    /// `None` when it was refused: a holder with a newer token has been here.
    async fn transaction(
        &self,
        id: i64,
        amount: i64,
        token: FencingToken,
    ) -> sqlx::Result<Option<i64>> {
        let mut transaction = self.rows.begin().await?;
        let claim = sqlx::query_scalar(CLAIM).bind(id).bind(token.as_i64());
        let Some(balance): Option<i64> = claim.fetch_optional(&mut *transaction).await? else {
            return Ok(None);
        };
        let balance = balance - amount;
        let update = sqlx::query("UPDATE account SET balance = $2 WHERE id = $1");
        update.bind(id).bind(balance).execute(&mut *transaction).await?;
        let entry = sqlx::query("INSERT INTO withdrawal (account, amount) VALUES ($1, $2)");
        entry.bind(id).bind(amount).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Some(balance))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    // Each connection would have a database of its own in memory.
    let rows = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(SCHEMA).execute(&rows).await?;
    let bank = Bank { locks: Locker::connect(&url).await?, rows };

    // A holder by hand, whose code nothing stops. It takes longer than its lease.
    let request = bank.locks.lock("account:7").expire(Duration::from_millis(200));
    let late = request.acquire().await?;
    println!("late holder:  token {}, thinking", late.lease().fencing_token());
    tokio::time::sleep(Duration::from_millis(300)).await;

    let (one, two) = tokio::try_join!(bank.withdraw(7, 10), bank.withdraw(7, 20))?;
    println!("next holders: balance {one:?} after 10, {two:?} after 20");

    assert_eq!(bank.transaction(7, 50, late.lease().fencing_token()).await?, None);
    println!("late holder:  its withdrawal of 50 is refused");

    let state = "SELECT balance, (SELECT SUM(amount) FROM withdrawal) FROM account WHERE id = 7";
    let (balance, withdrawn): (i64, i64) = sqlx::query_as(state).fetch_one(&bank.rows).await?;
    assert_eq!((balance, withdrawn), (70, 30));
    println!("the balance is {balance}");
    Ok(())
}
