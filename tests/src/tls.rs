//! Certificates that live as long as a test.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lockable_runtime::Pem;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use tempfile::TempDir;

/// A certificate authority, a server certificate of its for `localhost` and 127.0.0.1, and as many client
/// certificates as a test asks for.
///
/// The files lie in a temporary directory that goes with this value.
#[derive(Debug)]
pub struct Tls {
    directory: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, as PEM texts.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl From<Identity> for Pem {
    fn from(Identity { certificate, key }: Identity) -> Self {
        Self::new(certificate + &key)
    }
}

impl Tls {
    /// Makes a new authority, which no other one trusts.
    pub fn generate() -> Self {
        Self::generate_with(|_| {})
    }

    /// The same with an authority that ends after this time.
    pub fn ending(after: Duration) -> Self {
        Self::generate_with(|params| end(params, after))
    }

    fn generate_with(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let directory = TempDir::with_prefix("lockable-tls-").expect("a directory can be made");
        let authority = authority(change).expect("an authority can be made");
        let tls = Self { directory, authority };
        fs::write(tls.ca_file(), tls.authority.pem()).expect("the directory is new");
        tls.certify_server(&["localhost", "127.0.0.1"]);
        tls
    }

    /// Makes another certificate and key in the place of the server's, for these names and addresses.
    ///
    /// Servers read it when they start or restart.
    pub fn certify_server(&self, names: &[&str]) {
        self.write_server(&self.issue(names, |_| {}));
    }

    /// Puts a certificate in the place of the server's that has expired.
    ///
    /// Servers read it when they start or restart.
    pub fn expire_server(&self) {
        self.write_server(&self.issue(&["localhost", "127.0.0.1"], expire));
    }

    /// A new client certificate of this authority.
    pub fn client(&self) -> Identity {
        self.issue(&["client"], |_| {})
    }

    /// A client certificate of this authority that has expired.
    pub fn expired_client(&self) -> Identity {
        self.issue(&["client"], expire)
    }

    /// A client certificate of this authority that ends after this time.
    pub fn client_ending(&self, after: Duration) -> Identity {
        self.issue(&["client"], |params| end(params, after))
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
        self.authority.pem()
    }

    /// The authority's certificate as a locker trusts it.
    pub fn roots(&self) -> Pem {
        Pem::new(self.ca_pem())
    }

    fn issue(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        self.try_issue(names, change).expect("a certificate can be made")
    }

    fn try_issue(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Result<Identity, rcgen::Error> {
        let names: Vec<_> = names.iter().copied().map(str::to_owned).collect();
        let mut params = CertificateParams::new(names.clone())?;
        params.distinguished_name.push(DnType::CommonName, names.concat());
        change(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn write_server(&self, identity: &Identity) {
        fs::write(self.certificate_file(), &identity.certificate).expect("the file can be written");
        fs::write(self.key_file(), &identity.key).expect("the file can be written");
    }
}

fn authority(
    change: impl FnOnce(&mut CertificateParams),
) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::new([])?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = format!("lockable tests {}", AUTHORITIES.fetch_add(1, Ordering::Relaxed));
    params.distinguished_name.push(DnType::CommonName, name);
    change(&mut params);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn end(params: &mut CertificateParams, after: Duration) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    params.not_after = date_time_ymd(1970, 1, 1) + now + after;
}

fn expire(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
}

/// Each has a name of its own: of two with one name, the other's certificates have a wrong signature, not an
/// unknown issuer.
static AUTHORITIES: AtomicU32 = AtomicU32::new(0);
