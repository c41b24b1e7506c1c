//! Text: holes of templates, escapes, and durations.

pub(crate) mod duration;
pub(crate) mod escape;
pub(crate) mod hole;
pub(crate) mod percent;
