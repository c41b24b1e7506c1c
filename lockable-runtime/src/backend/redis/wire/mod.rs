//! Connections to a server, and what is said on them.

pub(crate) mod command;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod driven;
pub(crate) mod fault;
pub(crate) mod greeting;
pub(crate) mod script;
pub(crate) mod server;
mod words;
