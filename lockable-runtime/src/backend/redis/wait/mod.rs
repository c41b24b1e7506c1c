//! Waiting: the subscription on which grants arrive, and from when on they count.

pub(super) mod grants;
pub(super) mod times;
