//! There is no TLS without the feature `tls`.

use ::redis::{Client, ConnectionInfo};

use crate::backend::Settings;
use crate::backend::redis::fault;
use crate::types::error::LockError;

/// None, because no URL is one of TLS.
#[derive(Clone)]
pub(crate) struct Certificates;

impl Certificates {
    pub(crate) fn of(_: &Settings) -> Self {
        Self
    }

    pub(crate) fn client(&self, info: ConnectionInfo) -> Result<Client, LockError> {
        Client::open(info).map_err(|error| fault::bad_url(&error))
    }
}
