//! No call waits in vain, whatever becomes of the others, the messages and the server.

mod cancellation;
mod clock_set_back;
mod dead_waiters;
mod deletes;
mod disturbances;
mod forged_wake_ups;
mod hash_tags;
pub(crate) mod history;
mod killed_processes;
pub(crate) mod late_queries;
mod late_wake_ups;
mod longest_lease;
mod minimum_hold;
mod one_address;
mod orphans;
mod polling;
mod subscriptions;
pub(crate) mod support;
mod turns;
mod wait_limits;
