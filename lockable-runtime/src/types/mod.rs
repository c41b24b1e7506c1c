//! The values that all rooms share: each is checked where it is made.

pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod key;
pub(crate) mod options;
pub(crate) mod process;
pub(crate) mod redact;
pub(crate) mod reporting;
pub(crate) mod token;
