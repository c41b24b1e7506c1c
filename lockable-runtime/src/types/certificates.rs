//! The certificates of a client, and those of the authorities that it trusts.

use std::fmt;
use std::path::PathBuf;

use super::secret::Secret;

/// The root certificates that a locker trusts, in PEM form.
///
/// Several may follow each other; all of them are trusted alike.
#[derive(Clone)]
pub struct RootCertificates {
    pub(crate) pem: Vec<u8>,
}

impl RootCertificates {
    /// Makes root certificates of a text in PEM form.
    pub fn new(pem: impl Into<Vec<u8>>) -> Self {
        Self { pem: pem.into() }
    }

    /// Makes root certificates that are in a file, which is read for each new connection.
    pub fn file(path: impl Into<PathBuf>) -> Secret<Self> {
        Secret::in_files([path.into()], |[pem]| Ok(Self { pem }))
    }
}

impl fmt::Debug for RootCertificates {
    /// Without the certificates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootCertificates").finish_non_exhaustive()
    }
}

/// The certificate of a client and its key, in PEM form.
///
/// The certificates of the authorities between it and the root may follow it.
#[derive(Clone)]
pub struct ClientCertificate {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl ClientCertificate {
    /// Makes a client certificate of two texts in PEM form, which may be the same one.
    pub fn new(certificate_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        Self { certificate: certificate_pem.into(), key: key_pem.into() }
    }

    /// Makes a client certificate that is in two files, which are read for each new connection.
    ///
    /// Both may be one file, which is never half replaced.
    pub fn files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Secret<Self> {
        let paths = [certificate.into(), key.into()];
        Secret::in_files(paths, |[certificate, key]| Ok(Self { certificate, key }))
    }
}

impl fmt::Debug for ClientCertificate {
    /// Without the certificate and its key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}
