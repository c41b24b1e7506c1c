//! How does a database transaction run under a lock, and how does the row refuse a holder that is too late?
//!
//! The lock is outside and the transaction inside: the commit is the last step of the body, so the next holder
//! reads what this one wrote. The first statement of the transaction has the fencing token in its `WHERE`
//! clause. It changes no row if a newer holder was there before; otherwise it locks the row until the commit.
//!
//! PostgreSQL reads a row again for a statement that has waited for it (`READ COMMITTED`, the default), so a late
//! holder is refused also when it arrives in the middle of a newer holder's transaction.
//!
//! In this folder, run it with `cargo run --bin fencing_sql`: the database is SQLite in memory then, and so are the
//! locks. With `DATABASE_URL=postgres://user@127.0.0.1/name` it is PostgreSQL, where the program makes tables named
//! `lockable_example_…` and drops them; with `LOCKABLE_URL=redis://127.0.0.1:6379` the locks are in Redis. Watch for the
//! withdrawal of the late holder, which still believes that it holds the lock.

// Sources, for the row that is read again: https://www.postgresql.org/docs/17/transaction-iso.html and, for a
// transaction that is dropped: https://docs.rs/sqlx/0.9.0/sqlx/struct.Transaction.html

use std::env;
use std::error::Error;
use std::time::Duration;

use lockable_runtime::{FencingToken, Locker, distributed_lock};
use sqlx::AnyPool;
use sqlx::any::{AnyPoolOptions, install_default_drivers};
use tokio::sync::Notify;

const SCHEMA: &str = "
    DROP TABLE IF EXISTS lockable_example_account;
    DROP TABLE IF EXISTS lockable_example_withdrawal;
    CREATE TABLE lockable_example_account (
        id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0);
    CREATE TABLE lockable_example_withdrawal (account BIGINT NOT NULL, amount BIGINT NOT NULL);
    INSERT INTO lockable_example_account (id, balance) VALUES (7, 100)";

const CLAIM: &str = "UPDATE lockable_example_account SET fence = $2 \
    WHERE id = $1 AND fence <= $2 RETURNING balance";

/// One instance of the service.
struct Bank {
    locks: Locker,
    /// A service has the pool of its one database, such as `PgPool`.
    rows: AnyPool,
    /// For this example: a transaction has claimed its row.
    claimed: Notify,
}

impl Bank {
    /// Gives the new balance. A body that is stopped drops its transaction, which rolls back.
    #[distributed_lock(key = "account:{id}", wait = "5s", locker = self.locks, guard = lock)]
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
        self.claimed.notify_one();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let balance = balance - amount;
        let update = sqlx::query("UPDATE lockable_example_account SET balance = $2 WHERE id = $1");
        update.bind(id).bind(balance).execute(&mut *transaction).await?;
        let entry = sqlx::query("INSERT INTO lockable_example_withdrawal VALUES ($1, $2)");
        entry.bind(id).bind(amount).execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(Some(balance))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let database = env::var("DATABASE_URL").unwrap_or_else(|_| "sqlite::memory:".to_owned());
    install_default_drivers();
    // In memory each connection would have a database of its own.
    let connections = if database.starts_with("sqlite") { 1 } else { 2 };
    let pool = AnyPoolOptions::new().max_connections(connections);
    let rows = pool.connect(&database).await?;
    println!("on {}", rows.acquire().await?.backend_name());
    sqlx::raw_sql(SCHEMA).execute(&rows).await?;
    let bank = Bank { locks: Locker::connect(&url).await?, rows, claimed: Notify::new() };

    // A holder by hand, whose code nothing stops. It takes longer than its lease.
    let request = bank.locks.lock("account:7").expire(Duration::from_millis(200));
    let late = request.acquire().await?;
    let token = late.lease().fencing_token();
    println!("late holder: token {token}, thinking");
    tokio::time::sleep(Duration::from_millis(300)).await;

    let too_late = async {
        bank.claimed.notified().await;
        println!("late holder: starts its transaction in the middle of the next one's");
        Ok(bank.transaction(7, 50, token).await?)
    };
    let (next, refused) = tokio::try_join!(bank.withdraw(7, 10), too_late)?;
    println!("next holder: the balance is {next:?}");
    assert_eq!((next, refused), (Some(90), None));
    println!("late holder: its withdrawal of 50 is refused");

    let (one, two) = tokio::try_join!(bank.withdraw(7, 20), bank.withdraw(7, 30))?;
    println!("two at once: {one:?} and {two:?}");
    assert_eq!(one.min(two), Some(40));
    sqlx::raw_sql("DROP TABLE lockable_example_account; DROP TABLE lockable_example_withdrawal")
        .execute(&bank.rows)
        .await?;
    Ok(())
}
