//! How far a connection is that is being opened: the words of an error, and of a deadline that ends meanwhile.
//!
//! See "How are the addresses of a host tried, and what does an error say of them?" in DESIGN.md.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::core::process::mutex::Mutex;
use crate::core::types::remedy::Advice;

/// What is waited for.
#[derive(Default)]
pub(crate) enum Stage {
    /// Nothing of the server itself: it is not known where it is, or who logs in.
    #[default]
    Ahead,
    /// The addresses of this host.
    Name(String),
    /// A TCP connection to one of these addresses, each with what came of that.
    Tcp(BTreeMap<SocketAddr, String>),
    /// The answer to the handshake of TLS.
    Handshake,
    /// The answer to the login.
    Login,
    /// The answer to this command behind the login.
    Command(String),
}

/// The stage of one connection, and what to do where it fails there. The task that opens it writes; those who give up
/// waiting for it read.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Mutex<(Stage, Advice)>>);

impl Progress {
    /// The next stage begins.
    pub(crate) fn reach(&self, stage: Stage, advice: impl Into<Advice>) {
        *self.0.lock() = (stage, advice.into());
    }

    /// What came of trying this address.
    pub(super) fn tried(&self, address: SocketAddr, outcome: String) {
        if let (Stage::Tcp(tried), _) = &mut *self.0.lock() {
            tried.insert(address, outcome);
        }
    }

    /// Returns the stage in words, and what to do.
    pub(crate) fn words(&self) -> (String, Advice) {
        let reached = self.0.lock();
        (reached.0.to_string(), reached.1.clone())
    }

    /// Says that `what` did not happen within the limit, with the stage that was reached, and what to do.
    pub(crate) fn late(&self, what: &str, limit: Duration) -> (String, Advice) {
        let (stage, advice) = self.words();
        (format!("{what} within {limit:?}: {stage}"), advice)
    }
}

impl Display for Stage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ahead => f.write_str("nothing was sent to the server"),
            Self::Name(host) => write!(f, "the host name `{host}` was not resolved"),
            Self::Tcp(tried) => {
                let tried = tried.iter().map(|(address, outcome)| format!("{address}: {outcome}"));
                write!(f, "no TCP connection ({})", tried.collect::<Vec<_>>().join(", "))
            }
            Self::Handshake => f.write_str("no answer to the TLS handshake"),
            Self::Login => f.write_str("connected, but no answer to the login"),
            Self::Command(name) => write!(f, "logged in, but no answer to `{name}`"),
        }
    }
}
