//! The harness itself does what its documentation says.

mod peer;
mod program;
mod proxy;
mod server;
