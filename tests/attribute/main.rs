//! What a function under `#[distributed_lock]` does, on the memory backend; `request_ids` and
//! `sync_lease` look into a server.
//!
//! Every test has a locker, and so a store, of its own; the functions take it as a parameter and
//! name it with the option `locker`.

mod boxed_futures;
mod by_return_type;
mod control_flow;
mod counters;
mod debug_output;
mod default_locker;
mod events;
mod future_sizes;
mod hold_times;
mod keys;
mod labels;
mod leaders;
mod lease;
mod lifecycle;
mod methods;
mod once;
mod options;
mod other_attributes;
mod outcomes;
mod parameters;
mod permits;
mod reentry;
mod request_ids;
mod returns;
mod revoking;
mod several;
mod support;
mod sync;
mod sync_lease;
mod telemetry;
mod test_kit;
mod values;
mod waiting;
