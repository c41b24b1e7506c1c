//! What operators do: they list locks, ask holders to stop, and take locks away.
//!
//! `cargo xtask operations` repeats each as often as shows a rare failure.

mod failovers;
mod listing;
mod revoking;
mod support;
mod tracking;
