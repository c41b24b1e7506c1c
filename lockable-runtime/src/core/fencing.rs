//! The check of a [`FencingToken`](crate::FencingToken), where the data are in Redis.
//!
//! [Fencing](crate::guide::limits#fencing) in the guide explains what the check is for, has the
//! conditions for SQL, and lists [what fencing does not
//! promise](crate::guide::limits#what-fencing-does-not-promise).

const FENCE: &str = include_str!("../../scripts/fence.lua");

/// Wraps a Lua script for Redis, so that it runs only for the newest fencing token seen.
///
/// The result is one script for `EVAL`, `EVALSHA` or a client's own type for scripts, and so one atomic step. `body` is
/// a whole script without a `#!` line; error messages of Redis have its line numbers. The result takes:
///
/// - `KEYS[1]`: the record of the newest token seen. It is a key of your choice, the same for every script that writes
///   these data; in a cluster, with their hash tag.
/// - `ARGV[1]`: the [`FencingToken`](crate::FencingToken) of the caller, in decimal digits.
/// - the keys and arguments of `body`, after these two. In `body` they are `KEYS` and `ARGV` from 1 on.
///
/// # Guarantees
/// - If the token is older than the record, nothing is written, and the error reply has the code `FENCED` and names
///   both tokens.
/// - Otherwise the record becomes the token, `body` runs, and the reply is what it returns. No digit gets lost, however
///   large the number is.
/// - If the token is missing or not a number, or if the record is something else, nothing is written, and the reply is
///   an error.
/// - The record is written before `body` runs. If a command of `body` fails, the record stays, and so does all that
///   `body` has written: Redis rolls nothing back, and an older holder must not overwrite it.
///
/// # What this does not guarantee
/// The record has no expiry. If it is deleted, evicted or lost with its server, the next token makes a new record,
/// however old that token is.
///
/// # Examples
/// ```
/// use lockable_runtime::fencing;
///
/// # async fn example() -> Result<(), lockable_runtime::LockError> {
/// let locker = lockable_runtime::Locker::connect("memory://").await?;
/// let guard = locker.lock("stock:tea").acquire().await?;
/// let token = guard.lease().fencing_token().to_string();
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
