//! Certificates and keys as texts.

use std::fmt;
use std::path::PathBuf;

use super::secret::Secret;

/// Certificates, or a certificate and its key, as a text in PEM form.
///
/// [`LockerBuilder`](crate::LockerBuilder) takes it by `root_certificate` and `client_certificate`. A text may have
/// several parts, in any order.
#[derive(Clone)]
pub struct Pem(pub(crate) Vec<u8>);

impl Pem {
    /// Makes a value of a text.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// Makes a secret that is in a file, which is read for each new connection.
    ///
    /// One file with a certificate and its key is never half replaced.
    pub fn file(path: impl Into<PathBuf>) -> Secret<Self> {
        Self::files([path])
    }

    /// Makes a secret that is in several files, such as a certificate and its key, which are read for each new
    /// connection.
    pub fn files<const N: usize>(paths: [impl Into<PathBuf>; N]) -> Secret<Self> {
        Secret::in_files(paths.map(Into::into), |texts| Ok(Self(texts.join(&b'\n'))))
    }
}

impl fmt::Debug for Pem {
    /// Without the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pem").finish_non_exhaustive()
    }
}
