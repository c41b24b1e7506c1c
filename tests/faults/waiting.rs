//! No call waits in vain, whatever becomes of the others, the messages and the server.

mod cancellation;
pub(crate) mod claims;
mod clocks;
mod cohorts;
mod disturbances;
mod late_grants;
mod limits;
mod longest;
mod minimum;
mod orphans;
mod processes;
pub(crate) mod queues;
mod subscriptions;
mod tags;
mod turns;
