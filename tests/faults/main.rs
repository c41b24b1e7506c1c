//! What locks do when servers, networks, runtimes and callers fail.

mod cancellation;
mod comeback;
mod deadlines;
mod refusals;
mod round_trips;
mod runtimes;
mod support;
mod tls;
mod ways_out;
