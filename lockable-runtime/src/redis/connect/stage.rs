//! The stage of a connection that is being opened, for the words of an error or a timeout.
//!
//! See "How are the addresses of a host tried, and what does an error say of them?" in DESIGN.md.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::core::process::mutex::Mutex;
use crate::core::types::remedy::Advice;

#[derive(Default)]
pub(crate) enum Stage {
    /// The server's address or the login is not known yet.
    #[default]
    Ahead,
    /// The addresses of this host.
    Name(String),
    /// A TCP connection to one of these addresses, each with its outcome.
    Tcp(BTreeMap<SocketAddr, String>),
    Handshake,
    Login,
    /// The answer to this command after the login.
    Command(String),
}

/// The stage of one connection, and the advice if it fails there. The task that opens it writes; those who stop waiting
/// for it read.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<Mutex<(Stage, Advice)>>);

impl Progress {
    pub(crate) fn reach(&self, stage: Stage, advice: impl Into<Advice>) {
        *self.0.lock() = (stage, advice.into());
    }

    pub(super) fn tried(&self, address: SocketAddr, outcome: String) {
        if let (Stage::Tcp(tried), _) = &mut *self.0.lock() {
            tried.insert(address, outcome);
        }
    }

    pub(crate) fn words(&self) -> (String, Advice) {
        let reached = self.0.lock();
        (reached.0.to_string(), reached.1.clone())
    }

    /// Says that `what` did not happen within the limit, with the stage and the advice.
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
