//! The subscriptions: for wake-ups, and for messages to holders.

mod channel_set;
pub(super) mod kept;
pub(super) mod push_subscription;
pub(super) mod revocations;
pub(super) mod subscription;
pub(super) mod wake_ups;
