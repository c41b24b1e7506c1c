//! Models of what clients and the server do, which visit every order of a few events.
//!
//! `counters` is about the fence counters: what keeps fencing tokens rising over losses and failovers. `release` is
//! about one lock: how it is released and handed off, and what waiters leave in it. `queue` is about those who
//! wait for it: the lines of the processes, their turns, and what is lost or late. They are apart because the
//! release does not depend on the tokens, nor a line on the way of releasing, and together they would have too many
//! orders.
//!
//! `sets` is about calls for several locks: the order in which they take them.
//!
//! In each, all rules together are sound, and each of them is missed in some order if it is left out.

mod counters;
mod queue;
mod release;
mod sets;
mod visits;
