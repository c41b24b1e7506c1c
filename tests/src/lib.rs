//! The harness of the tests: real servers, a proxy that makes networks fail, and waiting with a
//! limit.
//!
//! - [`Server`] is a `redis-server` of the test's own, and [`Admin`] looks into it.
//! - [`Cluster`] is several servers that share the keys, and their replicas; [`cluster`] has what there is
//!   beside one.
//! - [`Sentinels`] is a primary with its replicas and those who watch over it.
//! - [`Proxy`] is between a client and a server; it counts what passes and can hold it back.
//! - [`Spreader`] is a proxy that makes one server of several, each with a part of the keys.
//! - [`StubNodes`] are in front of servers, and answer what nodes of a cluster answer.
//! - [`Peer`] is another process that the test talks with.
//! - [`Program`] is a process that does all its work by itself, and ends.
//! - [`Dice`] makes choices that a seed determines.
//! - [`long_form`] says how often a test repeats what only shows in many tries.
//! - [`Sections`] finds two holders at a time and tokens that do not rise; [`sections`] has what tests of failovers
//!   share beside it.
//! - [`Shared`] is what several tests use at the same time.
//! - [`wait`] polls for a state that has no event.
//! - [`Tls`] makes the certificates of a test server.
//! - [`clock`] says whether the clock of a server can be set here.
//! - [`forks`] runs processes whose children are made without the `fork` of libc.
//! - [`suspension`] runs processes as after a suspension of the machine.
//! - [`python`] finds the interpreter for tests against clients in other languages.
//!
//! Whatever here cannot do what it was asked panics: a broken harness is a failed test.

pub mod clock;
pub mod cluster;
pub mod forks;
pub mod python;
pub mod sections;
pub mod suspension;
pub mod wait;

mod admin;
mod busy;
mod dice;
mod peer;
mod program;
mod proxy;
mod repeat;
mod sentinels;
mod server;
mod shared;
mod skip;
mod spreader;
mod stub_nodes;
mod tls;

mod port;
mod preload;
mod resp;
mod spawner;

pub use admin::Admin;
pub use busy::unless_busy;
pub use cluster::{Cluster, ClusterBuilder};
pub use dice::Dice;
pub use peer::Peer;
pub use program::Program;
pub use proxy::{Proxy, traffic::ConnectionTraffic};
pub use repeat::long_form;
pub use sections::Sections;
pub use sentinels::{Sentinels, SentinelsBuilder, Switches};
pub use server::{Server, ServerBuilder};
pub use shared::Shared;
pub use spreader::Spreader;
pub use stub_nodes::{Answer, Cue, Disorder, Garble, Hold, Host, Share, StubNodes};
pub use tls::{Identity, Tls};
