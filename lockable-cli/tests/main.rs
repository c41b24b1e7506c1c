//! The program `lockable` as a user has it: real processes, and a server.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says that something must not fail by unwrapping it"
)]

mod operator;
mod program;
mod run;
