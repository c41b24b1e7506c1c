//! The harness itself does what its documentation says.

mod peer;
mod proxy;
mod server;
