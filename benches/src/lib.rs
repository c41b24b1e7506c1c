//! What the benches share: a Redis server of their own, cores kept awake, contenders in processes of
//! their own, and numbers compared as ratios.
//!
//! The machines that these run on drift, so an absolute figure proves nothing: every contender runs
//! a short round in turn, and what counts is the median of the ratios within one turn.

mod awake;
mod clock;
mod command_line;
pub mod contenders;
mod cores;
mod goal;
mod leash;
mod numbers;
mod observer;
pub mod peers;
mod pinging;
mod server;
mod team;
pub mod worker;

pub use awake::AwakeCores;
pub use clock::{cpu_time, monotonic};
pub use command_line::CommandLine;
pub use cores::{Cores, number_of_cores};
pub use goal::Bound;
pub use leash::Leash;
pub use numbers::{median, quartiles, spread, three_digits, three_digits_of_median};
pub use observer::{Observer, Snapshot};
pub use pinging::{Pinging, Times};
pub use server::Server;
pub use team::{Team, Worker};
