//! The checks of a [`FencingToken`](crate::FencingToken), where the data are.
//!
//! A holder that was paused past its lease does not know that, and continues to write. Only the storage
//! of the data can refuse such a write: it remembers the newest fencing token that it has seen, and
//! compares the token of each write with that, in one step with the write.
//!
//! An equal token is the same holder's, and passes: one holder may write often. Every write of the
//! data has to carry a token; a write without one is not fenced.
//!
//! # In Redis
//! [`redis_script`] wraps a script that writes.
//!
//! # In SQL
//! A column `fence BIGINT NOT NULL DEFAULT 0` beside the data, and a condition on it; the token
//! binds as [`as_i64`](crate::FencingToken::as_i64). No row changed means that the write was
//! refused, or that there is no such row:
//!
//! ```sql
//! UPDATE account SET balance = $2, fence = $1 WHERE id = $3 AND fence <= $1;
//! ```
//!
//! To insert or update, in PostgreSQL and in SQLite, where no row changed means refused:
//!
//! ```sql
//! INSERT INTO account (id, balance, fence) VALUES ($3, $2, $1)
//! ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, fence = excluded.fence
//! WHERE account.fence <= excluded.fence;
//! ```
//!
//! A transaction that writes more than this row begins with such a statement, which also locks the
//! row, and rolls back when it changed none.
//!
//! # What this does not guarantee
//! A late write passes if it comes before the first write of the next holder, because the storage has
//! seen no newer token yet; the next holder finds what it wrote.
//!
//! A row or a record that is deleted is forgotten with the tokens it has seen, so an older holder
//! can insert it again. Keep the fence, and delete the data beside it.

/// The script around the user's.
const FENCE: &str = include_str!("../scripts/fence.lua");

/// Wraps a Lua script for Redis, so that it runs only for the newest fencing token seen.
///
/// The whole is one script for `EVAL`, `EVALSHA` or a client's own type for scripts, and so one
/// atomic step. It takes
///
/// - `KEYS[1]`: the record of the newest token seen, a key of your choice, the same for every
///   script that writes these data; in a cluster under the same hash tag as they are,
/// - `ARGV[1]`: the [`FencingToken`](crate::FencingToken) of the caller, in decimal digits,
/// - after them what `body` takes, which it finds in its own `KEYS` and `ARGV` from 1 on.
///
/// # Guarantees
/// An older token than the record gives an error reply with the code `FENCED` that names both
/// tokens, and nothing is written. Otherwise the record becomes the token, `body` runs, and what it
/// returns is the reply. No digit gets lost, however large the number is.
///
/// A token that is missing or not a number, and a record that is something else, give an error
/// reply, and nothing is written.
///
/// The record is written before `body` runs. When a command of `body` fails, both what `body` has
/// written until then and the record stay: Redis rolls nothing back, and an older holder must not
/// write over it.
///
/// # What this does not guarantee
/// The record has no expiry. Where it is deleted, evicted or lost with its server, the next token
/// starts it again, however old it is.
///
/// `body` is a whole script, but without a `#!` line. Error messages of Redis count its lines as they
/// are.
///
/// # Examples
/// ```
/// use lockable_runtime::fencing;
///
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("stock:tea").acquire().await?;
/// let token = guard.fencing_token().to_string();
/// let script = fencing::redis_script("return redis.call('SET', KEYS[1], ARGV[1])");
/// // With any client: two keys, of which the script sees its own, and so with the arguments.
/// let command = ["EVAL", &script, "2", "stock:{tea}:fence", "stock:{tea}", &token, "9"];
/// # drop(command);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
#[must_use]
pub fn redis_script(body: &str) -> String {
    // The body is first, so that nothing else is in its scope and its line numbers stay.
    ["local guarded = function() ", body, "\nend\n", FENCE].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_stays_the_first() {
        let script = redis_script("return 1 -- a comment without an end of line");
        assert!(script.lines().next().unwrap().ends_with("end of line"));
        assert_eq!(script.lines().nth(1), Some("end"));
    }
}
