//! What all processes lock.

/// Enough that a fault stops not all, and fewer than callers, so that nearly all wait for their turn.
pub(crate) const KEYS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

/// Few wait for these, and many outlive their leases. They are of one hash slot.
pub(crate) const QUIET: [&str; 8] =
    ["{q}1", "{q}2", "{q}3", "{q}4", "{q}5", "{q}6", "{q}7", "{q}8"];

pub(crate) const PERMITS: &str = "p";

/// What leaders campaign for.
pub(crate) const LEADER: &str = "leader";
