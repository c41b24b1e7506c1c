//! `lockable run`: whatever becomes of the lock, the server and `lockable`, no process of the command outlives the
//! lease.
//!
//! `cargo xtask operations` repeats the endings as often as shows a rare failure.

mod endings;
mod exits;
mod permits;
mod secrets;
mod signals;
