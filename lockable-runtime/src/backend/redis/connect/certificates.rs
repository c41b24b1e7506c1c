//! TLS: whose certificate a server must have, and which one it is shown.
//!
//! See "Why is TLS not left to the `redis` crate?" in DESIGN.md.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{ConnectionAddr, ConnectionInfo};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::backend::Settings;
use crate::backend::redis::fault::NoRootCertificates;
use crate::types::clock::{timer_on, within};
use crate::types::error::{LockError, LockErrorKind};
use crate::types::mutex::Mutex;
use crate::types::url;

/// A stream over which TLS is spoken.
pub(crate) type Encrypted = TlsStream<TcpStream>;

/// The certificates of a locker.
#[derive(Clone)]
pub(crate) struct Certificates(Arc<Shared>);

struct Shared {
    provider: Arc<CryptoProvider>,
    /// The client's own, with its key.
    own: Option<Arc<dyn ResolvesClientCert>>,
    /// Whether the system's roots are trusted, and not one of the locker's.
    is_by_system: bool,
    /// How connections are encrypted; `None` until the system's roots are read.
    config: Mutex<Option<Arc<ClientConfig>>>,
    /// The runtime whose timers keep the deadlines.
    timers: Handle,
}

impl Certificates {
    /// # Errors
    /// When a certificate is no such, or is given although nothing is encrypted.
    pub(crate) fn of(
        settings: &Settings,
        info: &ConnectionInfo,
        timers: Handle,
    ) -> Result<Self, LockError> {
        let root = &settings.root_certificate;
        let own = &settings.client_certificate;
        match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(url::invalid(INSECURE));
            }
            ConnectionAddr::TcpTls { .. } => {}
            _ if root.is_some() => return Err(invalid(ROOT, WITHOUT_TLS)),
            _ if own.is_some() => return Err(invalid(OWN, WITHOUT_TLS)),
            _ => {}
        }
        // Another crate of the program may have chosen one for the whole process.
        let chosen = CryptoProvider::get_default().cloned();
        let provider = chosen.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let own = own.as_ref().map(|(chain, key)| identity(chain, key, &provider)).transpose()?;
        let roots = root.as_deref().map(roots).transpose()?;
        let is_by_system = roots.is_none();
        let shared = Shared { provider, own, is_by_system, config: Mutex::default(), timers };
        if let Some(roots) = roots {
            let config = shared.encrypting(roots).map_err(|error| invalid(ROOT, &error))?;
            *shared.config.lock() = Some(config);
        }
        Ok(Self(Arc::new(shared)))
    }

    /// Whether the client has a certificate of its own.
    pub(crate) fn has_own(&self) -> bool {
        self.0.own.is_some()
    }

    /// Has the server show its certificate, which must be valid for that host.
    pub(crate) async fn encrypt(
        &self,
        stream: TcpStream,
        host: &str,
        limit: Duration,
    ) -> io::Result<Encrypted> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config = self.config().await?;
        let handshake = TlsConnector::from(config).connect(name, stream);
        let encrypted = within(|| timer_on(&self.0.timers, limit), handshake).await;
        let silence = || format!("no answer to the TLS handshake within {limit:?}");
        let late = || Err(io::Error::new(io::ErrorKind::TimedOut, silence()));
        encrypted.unwrap_or_else(late).inspect_err(|error| self.doubt(error))
    }

    async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.0.config.lock().clone() {
            return Ok(config);
        }
        // Off the threads that others wait for: these are hundreds of certificates.
        let roots =
            self.0.timers.spawn_blocking(system_roots).await.map_err(io::Error::other)??;
        let config = self.0.encrypting(roots).map_err(io::Error::other)?;
        *self.0.config.lock() = Some(Arc::clone(&config));
        Ok(config)
    }

    /// The system may know the server's authority by the next connection.
    fn doubt(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref());
        if self.0.is_by_system && matches!(error, Some(rustls::Error::InvalidCertificate(_))) {
            *self.0.config.lock() = None;
        }
    }
}

impl Shared {
    fn encrypting(&self, roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
        let mut config = match &self.own {
            Some(own) => builder.with_client_cert_resolver(Arc::clone(own)),
            None => builder.with_no_client_auth(),
        };
        // Each connection shows the certificates of now.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// The root certificates of this system; what is broken among them is left out.
fn system_roots() -> io::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reason = found.errors.first().map(ToString::to_string);
        return Err(io::Error::other(NoRootCertificates { reason }));
    }
    Ok(roots)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, LockError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem, ROOT)? {
        roots.add(certificate).map_err(|error| invalid(ROOT, &error))?;
    }
    Ok(roots)
}

fn identity(
    certificate: &[u8],
    key: &[u8],
    provider: &CryptoProvider,
) -> Result<Arc<dyn ResolvesClientCert>, LockError> {
    let chain = chain(certificate, OWN)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| invalid(OWN, NO_KEY))?;
    let identity = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => invalid(OWN, OTHER_KEY),
        error => invalid(OWN, &error),
    })?;
    Ok(Arc::new(SingleCertAndKey::from(identity)))
}

/// The certificates in a text of PEM form: at least one.
fn chain(pem: &[u8], method: &str) -> Result<Vec<CertificateDer<'static>>, LockError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(invalid(method, NO_CERTIFICATE)),
    }
}

fn invalid(method: &str, flaw: impl std::fmt::Display) -> LockError {
    LockError::new(LockErrorKind::InvalidOption, format!("`LockerBuilder::{method}`: {flaw}"))
}

const ROOT: &str = "root_certificate";

const OWN: &str = "client_certificate";

const NO_CERTIFICATE: &str = "this is no certificate in PEM form, which begins with \
                              `-----BEGIN CERTIFICATE-----`";

const NO_KEY: &str = "its key is no private key in PEM form, or one with a password";

const OTHER_KEY: &str = "its key is that of another certificate";

const WITHOUT_TLS: &str = "nothing is encrypted with this URL; write `rediss://`, and of Sentinels \
                           `rediss-sentinel://`";

const INSECURE: &str = "`#insecure` is not supported: a server is known by its certificate; give that of its \
                        authority by `LockerBuilder::root_certificate`";
