//! What is known of a server: its fence counters and its clock.

pub(super) mod fence;
pub(super) mod times;
