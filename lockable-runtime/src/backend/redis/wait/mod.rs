//! Waiting: the subscription on which grants arrive.

pub(super) mod grants;
