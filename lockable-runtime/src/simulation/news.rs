//! What a process learns by messages.

use std::sync::Arc;

use super::life::Life;
use crate::core::backend::Revocation;
use crate::core::types::slot::Slot;

#[derive(Clone, Debug)]
pub(super) enum News {
    Operator(Revocation),
    /// Another process has changed a lock that this one tracks.
    Changed(&'static str),
    /// The slot is at the other server.
    Moved(Slot),
    /// Another server is the primary.
    Primary,
    /// This server is left.
    Left(usize),
}

pub(super) trait Hears: Send + Sync {
    fn number(&self) -> usize;

    fn life(&self) -> &Life;

    fn is_deaf(&self) -> bool;

    fn hears(self: Arc<Self>, news: News);
}
