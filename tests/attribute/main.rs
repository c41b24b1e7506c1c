//! What a function under `#[distributed_lock]` does, on the memory backend; `identity` and
//! `sync_lease` look into a server.
//!
//! Every test has a locker, and so a store, of its own; the functions take it as a parameter and
//! name it with the option `locker`.

mod arguments;
mod boxed;
mod counters;
mod debug;
mod environment;
mod events;
mod flow;
mod identity;
mod keys;
mod kit;
mod lease;
mod lifecycle;
mod limits;
mod methods;
mod options;
mod outcomes;
mod own_lock;
mod returns;
mod sizes;
mod stacking;
mod support;
mod sync;
mod sync_lease;
mod telemetry;
mod waiting;
