//! What to do, in the words of this program: the library's advice is for those who write programs.

use lockable_runtime::{LockError, Remedy};

/// The error, with what to do.
pub(crate) fn of_error(error: &LockError) -> String {
    match error.remedy().and_then(advice) {
        Some(advice) => format!("{}; {advice}", error.message()),
        None => error.to_string(),
    }
}

/// What to do; `None` where the library's words serve.
pub(crate) fn advice(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::UrlCredentials => {
            "put the right user and password into LOCKABLE_URL, or the password into a file for --password-file"
        }
        Remedy::Credentials => "the server refuses the user, or the password in --password-file",
        Remedy::SentinelCredentials => {
            "give the Sentinels' credentials by `?sentinel_user=…&sentinel_password=…` in LOCKABLE_URL, or by \
             --sentinel-password-file"
        }
        Remedy::RootCertificate => {
            "give the certificate of the server's authority by --ca-file; or install `ca-certificates`, if it is a \
             public one"
        }
        Remedy::ClientCertificate => {
            "if the server requires client certificates, give one that it accepts by --cert-file and --key-file"
        }
        Remedy::UrlScheme => {
            "write one of `redis://`, `rediss://`, `redis-sentinel://`, `rediss-sentinel://`, `redis-cluster://`, \
             `rediss-cluster://`, or `redis+unix://`"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use lockable_runtime::Locker;

    use super::*;

    #[test]
    fn an_operator_reads_of_no_store_in_memory() {
        let error = Locker::builder().url("radish://a").connect_lazy().unwrap_err();
        let (text, library) = (of_error(&error), error.to_string());
        assert!(library.contains("memory://") && !text.contains("memory://"), "{text}");
        assert!(text.starts_with("unknown scheme `radish://`; write one of `redis://`"), "{text}");
    }
}
