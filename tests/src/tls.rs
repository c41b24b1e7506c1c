//! Certificates that live as long as a test.

use std::fs;
use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// A certificate authority and a server certificate of its for `localhost` and 127.0.0.1.
///
/// The files lie in a temporary directory that goes with this value.
#[derive(Debug)]
pub struct Tls {
    directory: TempDir,
}

impl Tls {
    /// Makes a new authority, which no other one trusts.
    pub fn generate() -> Self {
        let directory = TempDir::with_prefix("lockable-tls-").expect("a directory can be made");
        let tls = Self { directory };
        tls.write().expect("certificates can be made and written");
        tls
    }

    /// The file of the authority's certificate, which clients trust.
    pub fn ca_file(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    /// The file of the server's certificate.
    pub fn certificate_file(&self) -> PathBuf {
        self.directory.path().join("server.crt")
    }

    /// The file of the server's private key.
    pub fn key_file(&self) -> PathBuf {
        self.directory.path().join("server.key")
    }

    /// The authority's certificate as PEM text.
    pub fn ca_pem(&self) -> String {
        fs::read_to_string(self.ca_file()).expect("the file lives as long as this value")
    }

    fn write(&self) -> Result<(), Box<dyn std::error::Error>> {
        let authority = CertifiedIssuer::self_signed(authority_params()?, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let certificate = server_params()?.signed_by(&key, &authority)?;
        fs::write(self.ca_file(), authority.pem())?;
        fs::write(self.certificate_file(), certificate.pem())?;
        fs::write(self.key_file(), key.serialize_pem())?;
        Ok(())
    }
}

fn authority_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "lockable tests");
    Ok(params)
}

fn server_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    Ok(params)
}
