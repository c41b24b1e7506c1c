//! Errors of TLS: whose certificate is refused, and which setting mends that.

use std::error::Error;
use std::fmt;

use ::redis::RedisError;
use rustls::{AlertDescription, CertificateError};

use super::opening::{NO_TLS, io_error};
use crate::core::types::error::LockErrorKind;
use crate::core::types::remedy::{Advice, Remedy};

/// This system has no root certificates, so it trusts no server.
#[derive(Debug)]
pub(crate) struct NoRootCertificates {
    pub(crate) reason: Option<String>,
}

impl fmt::Display for NoRootCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this system has no root certificates")?;
        self.reason.iter().try_for_each(|reason| write!(f, " ({reason})"))
    }
}

impl Error for NoRootCertificates {}

/// Who is to do what about an error of TLS; `None` for others.
pub(super) fn verdict(error: &RedisError) -> Option<(LockErrorKind, Advice)> {
    use LockErrorKind::{Refused, Unavailable};
    let cause = io_error(error)?.get_ref()?;
    if cause.is::<NoRootCertificates>() {
        return Some((Refused, NO_ROOTS));
    }
    Some(match cause.downcast_ref()? {
        rustls::Error::InvalidCertificate(error) => (Refused, of_server(error)),
        rustls::Error::AlertReceived(alert) => (Refused, of_alert(*alert)?),
        rustls::Error::PeerIncompatible(_) => (Refused, VERSIONS.into()),
        rustls::Error::InvalidMessage(_) => (Unavailable, NO_TLS.into()),
        _ => return None,
    })
}

fn of_server(error: &CertificateError) -> Advice {
    use CertificateError as Is;
    let advice = match error {
        Is::UnknownIssuer | Is::BadSignature => return UNKNOWN_ISSUER,
        Is::NotValidForName | Is::NotValidForNameContext { .. } => {
            "write a host into the URL that the certificate names, or let the Sentinels name such hosts \
             (`sentinel announce-hostnames yes`, and `replica-announce-ip` with a host), or the nodes of a \
             cluster (`cluster-announce-hostname`, and `cluster-preferred-endpoint-type hostname`)"
        }
        Is::Expired | Is::ExpiredContext { .. } => {
            "give the server a new certificate (`tls-cert-file`), or correct this machine's clock"
        }
        Is::NotValidYet | Is::NotValidYetContext { .. } => {
            "correct this machine's clock, or give the server another certificate (`tls-cert-file`)"
        }
        // The library has no name for it.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it is the certificate of an authority: sign one for the server with it (`tls-cert-file`)"
        }
        _ => "give the server another certificate (`tls-cert-file`)",
    };
    advice.into()
}

/// What the server refuses; `None` if that is not about certificates.
fn of_alert(alert: AlertDescription) -> Option<Advice> {
    use AlertDescription as Is;
    let advice = match alert {
        Is::CertificateRequired | Is::NoCertificate => {
            "the server requires a client certificate; give one by `LockerBuilder::client_certificate`"
        }
        Is::CertificateExpired => {
            "the client's certificate has expired; give a new one by `LockerBuilder::client_certificate`"
        }
        Is::UnknownCA | Is::DecryptError => {
            "the server does not know the authority of the client's certificate; give one of an authority \
             that it trusts (`tls-ca-cert-file`) by `LockerBuilder::client_certificate`"
        }
        Is::BadCertificate
        | Is::UnsupportedCertificate
        | Is::CertificateRevoked
        | Is::CertificateUnknown
        | Is::AccessDenied => {
            "the server refuses the client's certificate; give another by `LockerBuilder::client_certificate`"
        }
        Is::HandshakeFailure => {
            "if the server requires client certificates, give one by `LockerBuilder::client_certificate`; \
             otherwise see its `tls-protocols` and `tls-ciphers`"
        }
        Is::ProtocolVersion | Is::InsufficientSecurity => return Some(VERSIONS.into()),
        Is::UnrecognisedName => {
            return Some("write a host into the URL that the server has a certificate for".into());
        }
        _ => return None,
    };
    Some(Advice::new(Remedy::ClientCertificate, advice))
}

const NO_ROOTS: Advice = Advice::new(
    Remedy::RootCertificate,
    "install `ca-certificates`, or give the certificate of the server's authority by `LockerBuilder::root_certificate`",
);

const UNKNOWN_ISSUER: Advice = Advice::new(
    Remedy::RootCertificate,
    "give the certificate of its authority by `LockerBuilder::root_certificate`",
);

const VERSIONS: &str =
    "let the server speak TLS 1.2 or 1.3 with a usual cipher (`tls-protocols`, `tls-ciphers`)";

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use rustls::{Error as Tls, InvalidMessage, OtherError, PeerIncompatible};

    use super::*;

    fn advice(error: Tls) -> Option<(LockErrorKind, Advice)> {
        verdict(&io::Error::new(io::ErrorKind::InvalidData, error).into())
    }

    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("as the library of certificates has it")
        }
    }

    impl Error for CaUsedAsEndEntity {}

    #[test]
    fn an_error_of_tls_says_what_mends_it() {
        use AlertDescription as Alert;
        let authority = CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity)));
        let cases = [
            (Tls::InvalidCertificate(CertificateError::UnknownIssuer), "root_certificate`"),
            (Tls::InvalidCertificate(CertificateError::NotValidForName), "announce-hostnames"),
            (Tls::InvalidCertificate(CertificateError::Expired), "new certificate"),
            (Tls::InvalidCertificate(CertificateError::NotValidYet), "clock"),
            (Tls::InvalidCertificate(CertificateError::Revoked), "another certificate"),
            (Tls::InvalidCertificate(authority), "of an authority"),
            (Tls::AlertReceived(Alert::CertificateRequired), "requires a client certificate"),
            (Tls::AlertReceived(Alert::CertificateExpired), "has expired"),
            (Tls::AlertReceived(Alert::UnknownCA), "an authority that it trusts"),
            (Tls::AlertReceived(Alert::DecryptError), "an authority that it trusts"),
            (Tls::AlertReceived(Alert::BadCertificate), "client_certificate`"),
            (Tls::AlertReceived(Alert::HandshakeFailure), "client_certificate`"),
            (Tls::AlertReceived(Alert::ProtocolVersion), "tls-protocols"),
            (Tls::AlertReceived(Alert::UnrecognisedName), "host into the URL"),
            (Tls::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon), "tls-ciphers"),
        ];
        for (error, words) in cases {
            let name = error.to_string();
            let (kind, advice) = advice(error).unwrap();
            assert_eq!(kind, LockErrorKind::Refused, "{name}");
            assert!(advice.text.contains(words), "{name}: {advice:?}");
        }
    }

    #[test]
    fn an_answer_that_is_no_tls_may_pass() {
        let (kind, advice) =
            advice(Tls::InvalidMessage(InvalidMessage::InvalidContentType)).unwrap();
        assert!(
            kind == LockErrorKind::Unavailable && advice.text.contains("`redis://`"),
            "{advice:?}"
        );
    }

    #[test]
    fn other_errors_are_none_of_tls() {
        assert_eq!(advice(Tls::AlertReceived(AlertDescription::InternalError)), None);
        assert_eq!(verdict(&io::Error::from(io::ErrorKind::ConnectionReset).into()), None);
        assert_eq!(verdict(&io::Error::other("words").into()), None);
    }

    #[test]
    fn missing_roots_say_what_to_install() {
        let missing = NoRootCertificates { reason: Some("no file".to_owned()) };
        assert_eq!(missing.to_string(), "this system has no root certificates (no file)");
        let (kind, advice) = verdict(&io::Error::other(missing).into()).unwrap();
        assert!(
            kind == LockErrorKind::Refused && advice.text.contains("`ca-certificates`"),
            "{advice:?}"
        );
    }
}
