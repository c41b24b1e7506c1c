//! A body whose lock is lost is stopped, at the deadline or when a renewal is refused, and is told.

mod connections;
mod servers;
mod stepping;
mod takeovers;
mod ways;
