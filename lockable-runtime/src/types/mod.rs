//! Values that all modules share: keys, tokens and options, which their constructors check.

pub(crate) mod clock;
pub(crate) mod credentials;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod key;
pub(crate) mod namespace;
pub(crate) mod options;
pub(crate) mod parameters;
pub(crate) mod process;
pub(crate) mod redact;
pub(crate) mod reporting;
#[cfg(test)]
pub(crate) mod seeded;
pub(crate) mod slot;
#[cfg(any(feature = "redis", feature = "__internals", test))]
pub(crate) mod tag;
pub(crate) mod token;
