//! There is no TLS without the feature `tls-no-provider`.
#![expect(clippy::unused_self, reason = "as where there are certificates")]

use std::future::{Ready, ready};
use std::io;
use std::time::Duration;

use ::redis::ConnectionInfo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use crate::core::settings::Settings;
use crate::core::types::error::LockError;

#[derive(Clone)]
pub(crate) struct Certificates;

pub(crate) type Encrypted = TcpStream;

impl Certificates {
    #[expect(clippy::unnecessary_wraps, reason = "as where there are certificates")]
    pub(crate) fn of(_: &Settings, _: &ConnectionInfo, _: Handle) -> Result<Self, LockError> {
        Ok(Self)
    }

    pub(crate) fn has_own(&self) -> bool {
        false
    }

    pub(crate) fn ending(&self) -> [String; 0] {
        []
    }

    pub(crate) fn encrypt(
        &self,
        _: TcpStream,
        _: &str,
        _: Duration,
    ) -> Ready<io::Result<Encrypted>> {
        ready(Err(io::ErrorKind::Unsupported.into()))
    }
}
