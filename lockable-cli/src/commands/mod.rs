//! What an operator asks: one command a file.

mod check;
mod ls;
mod release;
mod second_look;
mod show;
mod silence;
mod texts;

pub(crate) use self::check::check;
pub(crate) use self::ls::ls;
pub(crate) use self::release::release;
pub(crate) use self::show::show;
pub(crate) use self::texts::{completions, man};

use crate::arguments::Connection;
use crate::connect;
use crate::failure::{Failure, code};

/// A free lock, for a command that is about its holder: which lock was looked at, and where.
fn free(connection: &Connection, key: &str) -> Failure {
    let (prefix, place) = (connect::prefix(connection), connect::place(connection));
    let (prefix, place) = (prefix.unwrap_or_default(), place.unwrap_or_default());
    let advice = if !prefix.is_empty() && key.starts_with(&prefix) {
        "; write the key without its prefix".to_owned()
    } else if key.contains(['*', '?']) {
        format!("; to list all that match: {}", connect::command(connection, "ls", &[key]))
    } else {
        String::new()
    };
    let message = format!("the lock `{prefix}{key}` is free on {place}{advice}");
    Failure::new("free", code::FREE, message)
}

/// Other data under the key of a lock.
fn no_lock(key: &str) -> Failure {
    let message = format!("`{key}` holds data that is no lock; it was not changed");
    Failure::new("wrong-type", code::USAGE, message)
}
