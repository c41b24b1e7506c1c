//! Values that all modules share: keys, tokens and options, which their constructors check.

pub(crate) mod client_name;
pub(crate) mod clock;
pub(crate) mod credentials;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod escape;
pub(crate) mod generation;
pub(crate) mod grow_only;
pub(crate) mod hole;
#[cfg_attr(
    not(feature = "admin"),
    expect(unreachable_pub, reason = "the feature `admin` shows the ids")
)]
pub(crate) mod id;
pub(crate) mod key;
pub(crate) mod label;
pub(crate) mod line_key;
pub(crate) mod local_permits;
#[cfg(feature = "metrics")]
pub(crate) mod metric_keys;
#[cfg(not(feature = "metrics"))]
#[path = "no_metric_keys.rs"]
pub(crate) mod metric_keys;
pub(crate) mod mutex;
pub(crate) mod namespace;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod pause;
#[cfg(feature = "tls-no-provider")]
pub(crate) mod pem;
pub(crate) mod percent;
pub(crate) mod permit;
pub(crate) mod process;
pub(crate) mod random;
pub(crate) mod reason;
pub(crate) mod redact;
pub(crate) mod remedy;
pub(crate) mod reporting;
pub(crate) mod secret;
#[cfg(test)]
pub(crate) mod seeded;
pub(crate) mod selection;
pub(crate) mod slot;
#[cfg(any(feature = "redis", lockable_internals, test))]
pub(crate) mod tag;
pub(crate) mod ticket;
pub(crate) mod together;
pub(crate) mod token;
pub(crate) mod url;
pub(crate) mod utc;
pub(crate) mod written;
