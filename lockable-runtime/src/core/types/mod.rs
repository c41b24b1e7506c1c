//! Values that all modules share: keys, tokens and options, which their constructors check.

pub(crate) mod credentials;
pub(crate) mod error;
#[cfg_attr(
    not(feature = "admin"),
    expect(unreachable_pub, reason = "the feature `admin` shows the ids")
)]
pub(crate) mod id;
pub(crate) mod key;
pub(crate) mod line_key;
pub(crate) mod options;
pub(crate) mod owner;
pub(crate) mod pause;
#[cfg(feature = "tls-no-provider")]
pub(crate) mod pem;
pub(crate) mod permit;
pub(crate) mod random;
pub(crate) mod reason;
pub(crate) mod redact;
pub(crate) mod remedy;
pub(crate) mod reporting;
pub(crate) mod secret;
pub(crate) mod slot;
pub(crate) mod tag;
pub(crate) mod ticket;
pub(crate) mod token;
pub(crate) mod written;
