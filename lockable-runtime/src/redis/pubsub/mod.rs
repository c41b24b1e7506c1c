mod channel_set;
pub(super) mod kept;
pub(crate) mod push_subscription;
pub(crate) mod revocations;
pub(crate) mod subscription;
pub(super) mod wake_ups;
