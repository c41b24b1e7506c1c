//! The settings of a locker's store: by its builder, in its URL, and in the environment.

#[cfg(feature = "tls-no-provider")]
use std::sync::Arc;

use crate::core::naming::namespace::Namespace;
use crate::core::types::credentials::Credentials;
use crate::core::types::options::Deadlines;
#[cfg(feature = "tls-no-provider")]
use crate::core::types::pem::Pem;
use crate::core::types::secret::Secret;

pub(crate) mod defaults;
pub(crate) mod environment;
pub(crate) mod parameters;
pub(crate) mod url_settings;

#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) url: String,
    /// Names what is in Redis beside the locks; in memory that has no names.
    pub(crate) namespace: Namespace,
    pub(crate) service: Option<String>,
    pub(crate) deadlines: Deadlines,
    pub(crate) replicas: u8,
    #[cfg(feature = "tls-no-provider")]
    pub(crate) root_certificate: Option<Secret<Pem>>,
    #[cfg(feature = "tls-no-provider")]
    pub(crate) client_certificate: Option<Secret<Pem>>,
    #[cfg(feature = "tls-no-provider")]
    pub(crate) crypto_provider: Option<Arc<rustls::crypto::CryptoProvider>>,
    /// Those of a Redis server, if they are not in the URL.
    pub(crate) credentials: Option<Secret<Credentials>>,
    pub(crate) sentinel_credentials: Option<Secret<Credentials>>,
}
