//! What locks do when servers, networks, runtimes and callers fail.

mod cancellation;
mod check;
mod comeback;
mod counted_from;
mod deadlines;
mod events;
mod fencing;
mod forks;
mod loss;
mod pauses;
mod poll_times;
mod refusals;
mod releases;
mod renewal;
mod round_trips;
mod runtimes;
mod secrets;
mod support;
mod tls;
mod unknown;
mod waiting;
mod ways_out;
