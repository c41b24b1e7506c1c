//! Fencing tokens that the data checks: a script with a guard, and holders that are too late.

use lockable_runtime::fencing;
use lockable_tests::Admin;
use redis::{RedisResult, Value};

mod clock_set_forward;
mod failover;
mod pause;
mod script;
mod together;

/// What the guarded scripts write, and the newest fencing token that they have seen.
const DATA: &str = "stock:{tea}";
const RECORD: &str = "stock:{tea}:fence";

/// Writes the data under the guard.
fn write(admin: &Admin, token: impl ToString + Copy, value: &str) -> RedisResult<Value> {
    run(admin, "return redis.call('SET', KEYS[1], ARGV[1])", token, value)
}

/// Runs a script with the data as its key and one argument, under the guard.
fn run(
    admin: &Admin,
    body: &str,
    token: impl ToString + Copy,
    argument: &str,
) -> RedisResult<Value> {
    let (script, token) = (fencing::redis_script(body), token.to_string());
    admin.try_command(&["EVAL", &script, "2", RECORD, DATA, &token, argument])
}

/// The error of a write that was too late.
fn assert_fenced(
    outcome: RedisResult<Value>,
    token: impl ToString + Copy,
    newest: impl ToString + Copy,
) {
    let error = outcome.expect_err("an older token is refused");
    assert_eq!(error.code(), Some("FENCED"), "{error}");
    let (token, newest) = (token.to_string(), newest.to_string());
    let detail = error.detail().unwrap();
    let words: Vec<_> = detail.split([' ', ',']).collect();
    assert!(words.contains(&&*token) && words.contains(&&*newest), "{detail}");
}

/// What a reader finds: the data and the record.
fn stored(admin: &Admin) -> (Option<String>, Option<String>) {
    (admin.get(DATA), admin.get(RECORD))
}

/// The same, as a test expects it.
fn texts(data: &str, record: impl ToString + Copy) -> (Option<String>, Option<String>) {
    (Some(data.to_owned()), Some(record.to_string()))
}
