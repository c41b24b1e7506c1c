//! What a function under `#[distributed_lock]` does, on the memory backend.
//!
//! Every test has a locker, and so a store, of its own; the functions take it as a parameter and
//! name it with the option `locker`.

mod arguments;
mod boxed;
mod environment;
mod events;
mod flow;
mod keys;
mod lifecycle;
mod methods;
mod options;
mod outcomes;
mod returns;
mod sizes;
mod stacking;
mod support;
mod sync;
