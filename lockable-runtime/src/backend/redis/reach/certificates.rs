//! The certificates with which TLS connections are opened.

use ::redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};

use crate::backend::Settings;
use crate::backend::redis::fault;
use crate::types::error::LockError;

/// The root certificate and the client's own of a locker.
#[derive(Clone)]
pub(crate) struct Certificates(TlsCertificates);

impl Certificates {
    pub(crate) fn of(settings: &Settings) -> Self {
        // The process may have chosen a provider already; any will do.
        drop(rustls::crypto::ring::default_provider().install_default());
        let own = |(client_cert, client_key)| ClientTlsConfig { client_cert, client_key };
        let client_tls = settings.client_certificate.clone().map(own);
        Self(TlsCertificates { client_tls, root_cert: settings.root_certificate.clone() })
    }

    /// # Errors
    /// When a certificate is not valid.
    pub(crate) fn client(&self, info: ConnectionInfo) -> Result<Client, LockError> {
        let client = match info.addr() {
            ConnectionAddr::TcpTls { .. } => Client::build_with_tls(info, self.0.clone()),
            _ => Client::open(info),
        };
        client.map_err(|error| fault::bad_url(&error))
    }
}
