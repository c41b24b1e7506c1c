//! A cluster: which node a request goes to, and what follows from its answer.

mod answers;
mod hops;
mod in_parts;
mod nodes;
mod pace;
mod questions;
mod refreshes;
mod renewals;
mod routes;
mod table;
mod votes;

pub(super) use self::hops::Hops;
pub(super) use self::nodes::Cluster;
pub(super) use self::table::Member;
