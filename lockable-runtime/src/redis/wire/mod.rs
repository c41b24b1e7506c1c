//! Connections to a server: commands, scripts, replies and faults.

pub(crate) mod command;
pub(crate) mod connection;
pub(crate) mod delete;
pub(crate) mod flaw;
mod handshake;
pub(crate) mod meaning;
pub(super) mod outbox;
pub(crate) mod permits;
pub(crate) mod probe;
pub(crate) mod script;
mod sent;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod settings;
mod silence;
pub(crate) mod slots;
pub(crate) mod source;
pub(crate) mod tracking;
