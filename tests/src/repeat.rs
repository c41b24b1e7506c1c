//! How often a test repeats what only shows in many tries.

use std::env;

/// `usual` times in a test run, and `long` times where `LOCKABLE_LONG_FORM` is set, as `cargo xtask operations`
/// does.
#[must_use]
pub fn long_form(usual: usize, long: usize) -> usize {
    if env::var_os("LOCKABLE_LONG_FORM").is_some() { long } else { usual }
}
