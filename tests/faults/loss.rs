//! A body whose lock is lost is stopped, at the deadline or when a renewal is refused, and can see it.

mod append_only;
mod connections;
mod lost_bodies;
mod servers;
mod stepping;
