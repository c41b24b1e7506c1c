//! There is no TLS without the feature `tls`.

use std::io;
use std::time::Duration;

use ::redis::ConnectionInfo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::backend::Settings;
use crate::types::error::LockError;

/// None, because no URL is one of TLS.
#[derive(Clone)]
pub(crate) struct Certificates;

/// There is none.
pub(crate) type Encrypted = TcpStream;

impl Certificates {
    #[expect(clippy::unnecessary_wraps, reason = "as where there are certificates")]
    pub(crate) fn of(_: &Settings, _: &ConnectionInfo, _: Handle) -> Result<Self, LockError> {
        Ok(Self)
    }

    pub(crate) fn has_own(&self) -> bool {
        false
    }

    pub(crate) async fn encrypt(
        &self,
        _: TcpStream,
        _: &str,
        _: Duration,
    ) -> io::Result<Encrypted> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
