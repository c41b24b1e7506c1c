//! The server that the tests start, each for itself and on a port of its own.

use std::env;

use crate::{apt, shell};

/// Sees to it that there is a `redis-server`. The error says what to install.
pub(crate) fn prepare() -> Result<(), String> {
    let program = program();
    let is_there = || shell::answers(&program, &["--version"]);
    if is_there() || (apt::install("redis-server") && is_there()) {
        return Ok(());
    }
    Err(format!("`{program}` was not found. {HELP}"))
}

pub(crate) fn program() -> String {
    env::var("LOCKABLE_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

const HELP: &str = "\
The tests start Redis servers of their own. Install one, version 6.2 or newer:
    Debian, Ubuntu:  sudo apt-get install redis-server
    Fedora:          sudo dnf install redis
    macOS:           brew install redis
or set LOCKABLE_REDIS_SERVER to the path of a redis-server or valkey-server.";
