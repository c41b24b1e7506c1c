//! What locks do when servers, networks, runtimes and callers fail.

mod acquisitions;
mod addresses;
mod cancellation;
mod check;
mod deadlines;
mod events;
mod fencing;
mod forks;
mod in_vain;
mod late_polls;
mod lease_start;
mod loss;
mod pauses;
mod reconnection;
mod refusals;
mod releases;
mod renewal;
mod round_trips;
mod runtimes;
mod secrets;
mod sentinel;
mod support;
mod unknown_outcomes;
mod waiting;
mod ways_out;
