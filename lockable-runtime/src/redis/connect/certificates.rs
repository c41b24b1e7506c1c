//! TLS: the certificates that are trusted, and the client's own.
//!
//! See "Why is TLS not left to the `redis` crate?" in DESIGN.md.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ::redis::{ConnectionAddr, ConnectionInfo};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::expiry::{AHEAD, ends};
use super::secrets::{SecretSource, invalid, words};
use crate::core::process::clock::{timer_on, within};
use crate::core::process::mutex::Mutex;
use crate::core::settings::Settings;
use crate::core::settings::parameters;
use crate::core::types::error::LockError;
use crate::core::types::pem::Pem;
use crate::core::types::remedy::{Advice, Remedy};
use crate::redis::fault::NoRootCertificates;

pub(crate) type Encrypted = TlsStream<TcpStream>;

#[derive(Clone)]
pub(crate) struct Certificates(Arc<Shared>);

struct Shared {
    provider: Option<Arc<CryptoProvider>>,
    /// Without any, those of the system are trusted.
    roots: SecretSource<Pem>,
    own: SecretSource<Pem>,
    of_system: Mutex<Option<Arc<RootCertStore>>>,
    /// When the last connection's certificates end, with a sentence each.
    ends: Mutex<Vec<(SystemTime, String)>>,
    timers: Handle,
}

impl Certificates {
    /// # Errors
    /// When a certificate is invalid, or given without encryption, or cryptography is missing.
    pub(crate) fn of(
        settings: &Settings,
        info: &ConnectionInfo,
        timers: Handle,
    ) -> Result<Self, LockError> {
        let (roots, own) = (settings.root_certificate.clone(), settings.client_certificate.clone());
        let provider = match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(parameters::invalid(INSECURE).advise(AUTHORITY));
            }
            ConnectionAddr::TcpTls { .. } => Some(provider(settings)?),
            _ if roots.is_some() => return Err(without_tls(ROOT)),
            _ if own.is_some() => return Err(without_tls(OWN)),
            _ => None,
        };
        let valid = |own: &_| provider.as_ref().map_or(Ok(()), |it| identity(own, it).map(drop));
        let own = SecretSource::new(OWN, own, timers.clone(), valid)?;
        let roots =
            SecretSource::new(ROOT, roots, timers.clone(), |pem| root_store(pem).map(drop))?;
        let (of_system, ends) = (Mutex::default(), Mutex::default());
        Ok(Self(Arc::new(Shared { provider, roots, own, of_system, ends, timers })))
    }

    pub(crate) fn has_own(&self) -> bool {
        self.0.own.is_given()
    }

    pub(crate) async fn encrypt(
        &self,
        stream: TcpStream,
        host: &str,
        limit: Duration,
    ) -> io::Result<Encrypted> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config = self.0.config(limit / 2 * 3).await?;
        let handshake = TlsConnector::from(config).connect(name, stream);
        let encrypted = within(|| timer_on(&self.0.timers, limit), handshake).await;
        let silence = || format!("nothing within {limit:?}");
        let late = || Err(io::Error::new(io::ErrorKind::TimedOut, silence()));
        encrypted.unwrap_or_else(late).inspect_err(|error| self.0.doubt(error))
    }

    pub(crate) fn ending(&self) -> Vec<String> {
        let ends = self.0.ends.lock();
        let soon = SystemTime::now() + AHEAD;
        ends.iter().filter(|(end, _)| *end < soon).map(|(_, words)| words.clone()).collect()
    }
}

impl Shared {
    async fn config(&self, limit: Duration) -> io::Result<Arc<ClientConfig>> {
        let provider = self.provider.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let roots = self.roots.get(limit).await?;
        let own = self.own.get(limit).await?;
        let (roots, given) = match &roots {
            Some(pem) => root_store(pem).map_err(|flaw| self.roots.refuse(words(flaw)))?,
            None => (self.of_system().await?, Vec::new()),
        };
        let own = own.as_ref().map(|own| identity(own, provider)).transpose();
        let own = own.map_err(|flaw| self.own.refuse(words(flaw)))?;
        let mut all = ends(&given, &self.roots.name);
        all.extend(own.iter().flat_map(|own| ends(&own.cert, &self.own.name)));
        *self.ends.lock() = all;
        config(provider, roots, own).map(Arc::new).map_err(io::Error::other)
    }

    async fn of_system(&self) -> io::Result<Arc<RootCertStore>> {
        if let Some(roots) = self.of_system.lock().clone() {
            return Ok(roots);
        }
        // Off the threads that others wait for: these are hundreds of certificates.
        let roots = self.timers.spawn_blocking(system_roots).await.map_err(io::Error::other)??;
        Ok(Arc::clone(self.of_system.lock().insert(Arc::new(roots))))
    }

    /// Forgets the system's roots: it may know the server's authority by the next connection.
    fn doubt(&self, error: &io::Error) {
        let error = error.get_ref().and_then(|error| error.downcast_ref());
        if matches!(error, Some(rustls::Error::InvalidCertificate(_))) {
            *self.of_system.lock() = None;
        }
    }
}

/// The builder's provider, else the process-wide one, else ring, if compiled in.
///
/// See "Why is TLS not left to the `redis` crate?" in DESIGN.md.
fn provider(settings: &Settings) -> Result<Arc<CryptoProvider>, LockError> {
    let given = settings.crypto_provider.clone();
    let chosen = given.or_else(|| CryptoProvider::get_default().cloned());
    #[cfg(feature = "tls")]
    let chosen = chosen.or_else(|| Some(Arc::new(rustls::crypto::ring::default_provider())));
    chosen.ok_or_else(|| invalid(NO_PROVIDER.to_owned()))
}

fn config(
    provider: &Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    own: Option<CertifiedKey>,
) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider));
    let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
    let mut config = match own {
        Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
        None => builder.with_no_client_auth(),
    };
    // Each connection shows the certificates of now.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn without_tls(what: &str) -> LockError {
    invalid(format!("the {what}: nothing is encrypted with this URL"))
        .advise("write `rediss://`, and of Sentinels `rediss-sentinel://`")
}

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

fn root_store(roots: &Pem) -> Result<(Arc<RootCertStore>, Vec<CertificateDer<'static>>), String> {
    let chain = chain(roots)?;
    let mut store = RootCertStore::empty();
    for certificate in &chain {
        store.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    Ok((Arc::new(store), chain))
}

fn identity(own: &Pem, provider: &CryptoProvider) -> Result<CertifiedKey, String> {
    let chain = chain(own)?;
    let key = PrivateKeyDer::from_pem_slice(&own.0).map_err(|_| NO_KEY)?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => OTHER_KEY.to_owned(),
        error => error.to_string(),
    })
}

fn chain(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let found = CertificateDer::pem_slice_iter(&pem.0).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(NO_CERTIFICATE),
    }
}

const ROOT: &str = "root certificate";

const OWN: &str = "client certificate";

const NO_PROVIDER: &str = "no cryptography for TLS is chosen: give a provider by `LockerBuilder::crypto_provider`, choose one for \
                           the whole program by `CryptoProvider::install_default` of rustls 0.23, or enable the \
                           feature `tls` of lockable-runtime, which has ring";

const NO_CERTIFICATE: &str = "this is no certificate in PEM form, which begins with \
                              `-----BEGIN CERTIFICATE-----`";

const NO_KEY: &str = "its key is no private key in PEM form, or one with a password";

const OTHER_KEY: &str = "its key is that of another certificate";

const INSECURE: &str = "`#insecure` is not supported: a server is known by its certificate";

const AUTHORITY: Advice = Advice::new(
    Remedy::RootCertificate,
    "give that of its authority by `LockerBuilder::root_certificate`",
);
