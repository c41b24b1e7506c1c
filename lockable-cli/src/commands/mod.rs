//! What an operator asks: one command a file.

mod changes;
mod check;
mod key;
mod kinds;
mod liveness;
mod ls;
mod next;
mod pause;
mod release;
mod show;
mod silence;
mod snapshot;
mod texts;
mod wait;
mod watch;

pub(crate) use self::check::check;
pub(crate) use self::key::key;
pub(crate) use self::ls::ls;
pub(crate) use self::pause::{pause, resume};
pub(crate) use self::release::release;
pub(crate) use self::show::show;
pub(crate) use self::texts::{completions, man};
pub(crate) use self::wait::wait;

use std::env;

use lockable_runtime::admin::{Admin, Locks};

use crate::arguments::{Connection, Ls};
use crate::connect;
use crate::failure::{Failure, code};

/// A free lock, for a command that is about its holder: which lock was looked at, and where.
fn free(admin: &Admin, connection: &Connection, key: &str) -> Failure {
    let (prefix, place) = (admin.prefix(), connect::place(connection).unwrap_or_default());
    let advice =
        advice(admin, connection, key).map(|advice| format!("; {advice}")).unwrap_or_default();
    let message = format!("the lock `{prefix}{key}` is free on {place}{advice}");
    Failure::new("free", code::FREE, message)
}

/// What was probably meant by a key that no one has.
fn advice(admin: &Admin, connection: &Connection, key: &str) -> Option<String> {
    if is_prefixed(admin, key) {
        return Some("write the key without its prefix".to_owned());
    }
    let list = || connect::command(connection, "ls", &[key]);
    key.contains(['*', '?']).then(|| format!("to list all that match: {}", list()))
}

/// Other data under the key of a lock.
fn no_lock(key: &str) -> Failure {
    let message = format!("`{key}` holds data that is no lock; it was not changed");
    Failure::new("wrong-type", code::USAGE, message)
}

/// The listing that was asked for.
fn locks(admin: &Admin, arguments: &Ls) -> Locks {
    let locks = admin.locks().matching(arguments.pattern.as_deref().unwrap_or("*"));
    if arguments.fast { locks.unthrottled() } else { locks }
}

/// What was looked for, and where.
fn none(admin: &Admin, connection: &Connection, pattern: Option<&str>, kinds: &[String]) -> String {
    let (prefix, place) = (admin.prefix(), connect::place(connection).unwrap_or_default());
    let form = pattern.unwrap_or("*");
    let advice = if is_prefixed(admin, form) {
        "; write the pattern without the prefix".to_owned()
    } else if !form.contains(['*', '?', '[']) {
        format!("; try: {}", connect::command(connection, "ls", &[&format!("{form}*")]))
    } else {
        String::new()
    };
    let of_kinds = match kinds {
        [] => String::new(),
        kinds => format!(" of the kind {}", kinds.join(" or ")),
    };
    format!("no lock `{prefix}{form}`{of_kinds} is held on {place}{advice}")
}

/// Whether a key or a pattern has the prefix already, which every command adds.
fn is_prefixed(admin: &Admin, key: &str) -> bool {
    !admin.prefix().is_empty() && key.starts_with(admin.prefix())
}

/// Who types this.
fn user() -> String {
    env::var("USER").unwrap_or_else(|_| "someone".to_owned())
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// The headings of a list of locks.
const HEADINGS: [&str; 6] = ["KEY", "HOLDER", "PROCESS", "HELD", "LEFT", "WAITING"];
