//! The harness itself does what its documentation says.

mod proxy;
mod server;
