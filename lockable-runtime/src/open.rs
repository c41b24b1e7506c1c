//! Opens the store that a URL names; only this file knows all stores.

use std::sync::Arc;

use crate::core::backend::{Backend, Fault};
use crate::core::memory::Memory;
use crate::core::settings::Settings;
use crate::core::types::error::{LockError, LockErrorKind};
use crate::core::types::remedy::{Advice, Remedy};

/// The smallest store, for this project's own tests.
#[cfg(lockable_internals)]
#[path = "../../tests/contract/fixture/stub_store.rs"]
mod stub_store;

#[cfg(lockable_internals)]
pub use self::stub_store::StubStore;

const SCHEMES: Advice = Advice::new(
    Remedy::UrlScheme,
    "write one of `redis://`, `rediss://`, `redis-sentinel://`, `rediss-sentinel://`, `redis-cluster://`, \
     `rediss-cluster://`, `redis+unix://` or `memory://`",
);

/// Makes the backend that the URL names. Connects to nothing yet.
///
/// # Errors
/// When the URL names no backend. The message never shows the URL, which may hold a password.
pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn Backend>, LockError> {
    let Some((scheme, rest)) = settings.url.split_once("://") else {
        return Err(invalid(NO_SCHEME.to_owned()).advise(SCHEMES));
    };
    match scheme {
        "memory" if settings.replicas > 0 => {
            Err(LockError::new(LockErrorKind::InvalidOption, "a store in memory has no `replicas`")
                .advise("leave that setting out"))
        }
        "memory" => {
            let memory = Memory::open_as(rest, settings.service.as_deref());
            Ok(Arc::new(memory.map_err(Fault::into_error)?))
        }
        #[cfg(lockable_internals)]
        "stub" => Ok(Arc::new(StubStore::open(rest)?)),
        scheme if is_of_redis(scheme) => open_redis(settings),
        other => Err(invalid(unknown(other)).advise(SCHEMES)),
    }
}

/// What cannot be a scheme may be a password, of a URL without one.
fn unknown(scheme: &str) -> String {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    if scheme.bytes().all(is_part) {
        format!("unknown scheme `{scheme}://`")
    } else {
        NO_SCHEME.to_owned()
    }
}

const NO_SCHEME: &str = "the URL has no scheme";

#[cfg(feature = "redis")]
fn is_of_redis(scheme: &str) -> bool {
    crate::redis::Redis::has_scheme(scheme)
}

#[cfg(feature = "redis")]
fn open_redis(settings: &Settings) -> Result<Arc<dyn Backend>, LockError> {
    Ok(Arc::new(crate::redis::Redis::open(settings)?))
}

#[cfg(not(feature = "redis"))]
fn is_of_redis(scheme: &str) -> bool {
    ["redis", "valkey", "unix"].iter().any(|start| scheme.starts_with(start))
}

#[cfg(not(feature = "redis"))]
fn open_redis(_: &Settings) -> Result<Arc<dyn Backend>, LockError> {
    Err(invalid("this URL needs the feature `redis` of lockable-runtime".to_owned()))
}

fn invalid(message: String) -> LockError {
    LockError::new(LockErrorKind::InvalidUrl, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> LockError {
        open(&Settings { url: url.to_owned(), ..Settings::default() }).err().unwrap()
    }

    #[test]
    fn a_url_without_a_backend_says_what_to_write() {
        for url in ["", "127.0.0.1:6379", "http://localhost", "redis//x"] {
            let error = refusal(url);
            assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}");
            assert!(error.to_string().contains("`redis://`"), "{error}");
        }
    }

    #[test]
    fn a_refused_url_keeps_its_password() {
        for url in
            ["redis://user:secret@host:99999/0", "http://:secret@host", "redis://:secret@h/x"]
        {
            let error = refusal(url);
            assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
    }
}
