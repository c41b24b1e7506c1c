//! The harness itself does what its documentation says.

mod cluster;
mod pace;
mod peer;
mod program;
mod proxy;
mod sentinels;
mod server;
mod tls;
