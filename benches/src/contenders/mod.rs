//! The ways to lock that more than one bench has.

mod attribute;
mod bare;
mod client;
mod ours;
mod same;

pub use attribute::Attribute;
pub use bare::Bare;
pub use client::{Client, Script};
pub use ours::{OnePermit, Order, Ours, TwoKeys};
pub use same::Same;

use std::time::Duration;

/// The lease, which no round outlives.
pub const LEASE_MS: u64 = 10_000;
/// How long a connection or an answer may take: Valgrind makes them slow.
const DEADLINE: Duration = Duration::from_secs(60);
/// The owner token of those that have only one.
pub const OWNER: &str = "0123456789abcdef.1234567";
/// What a lock without a queue needs to release.
pub const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
