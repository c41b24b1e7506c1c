//! The ways to lock that more than one bench has.

mod bare;
mod client;
mod ours;

pub use bare::Bare;
pub use client::{Client, Script};
pub use ours::{Order, Ours};

/// The lease, which no round outlives.
pub const LEASE_MS: u64 = 10_000;
/// The owner token of those that have only one.
pub const OWNER: &str = "0123456789abcdef.1234567";
/// What a lock without a queue needs to release.
pub const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";
