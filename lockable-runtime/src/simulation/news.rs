//! What a process hears of, and not by an answer.

use std::sync::Arc;

use super::life::Life;
use crate::core::backend::Revocation;
use crate::core::types::slot::Slot;

#[derive(Clone, Debug)]
pub(super) enum News {
    /// An operator does something with a lock.
    Operator(Revocation),
    /// Another one has changed a lock that the process tracks.
    Changed(&'static str),
    /// The slot is at the other server.
    Moved(Slot),
    /// Another server is the primary.
    Primary,
    /// This server is left.
    Left(usize),
}

/// A process, as the world sees it.
pub(super) trait Hears: Send + Sync {
    fn number(&self) -> usize;

    fn life(&self) -> &Life;

    /// Whether no message arrives.
    fn is_deaf(&self) -> bool;

    fn hears(self: Arc<Self>, news: News);
}
