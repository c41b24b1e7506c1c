//! Connections to a server: commands, scripts, replies and faults.

pub(super) mod command;
pub(super) mod connection;
pub(super) mod delete;
pub(super) mod flaw;
mod handshake;
pub(super) mod meaning;
pub(super) mod outbox;
pub(super) mod permits;
pub(super) mod probe;
pub(super) mod script;
mod sent;
pub(super) mod server;
pub(super) mod session;
pub(super) mod settings;
mod silence;
pub(super) mod slots;
pub(super) mod source;
pub(super) mod tracking;
