use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};

use crate::core::process::utc::utc;

/// When each of these certificates ends, with a sentence; omits one whose end cannot be read.
pub(super) fn ends(certificates: &[CertificateDer<'_>], name: &str) -> Vec<(SystemTime, String)> {
    let count = certificates.len();
    let end = |(number, certificate)| {
        let end = not_after(certificate)?;
        let which = if count > 1 { format!(" {number} of {count}") } else { String::new() };
        Some((end, format!("{name}: the certificate{which} is valid until {}", utc(end))))
    };
    (1..).zip(certificates).filter_map(end).collect()
}

/// The TLS library has no function for it, but checks the end before anything else, and its error says when it was.
fn not_after(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let certificate = ParsedCertificate::try_from(certificate).ok()?;
    let after_all = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let none = RootCertStore::empty();
    match verify_server_cert_signed_by_trust_anchor(&certificate, &none, &[], after_all, &[]) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            UNIX_EPOCH.checked_add(Duration::from_secs(not_after.as_secs()))
        }
        _ => None,
    }
}

/// How long before its end a certificate is warned of: two weeks have a working day on any calendar.
pub(super) const AHEAD: Duration = Duration::from_secs(14 * 24 * 60 * 60);
