//! With which user and password a connection logs in.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::types::error::Cause;

/// A user and its password, or a token in place of it.
///
/// # Examples
/// ```
/// use lockable_runtime::Credentials;
///
/// let credentials = Credentials::new("app", "secret");
/// assert!(!format!("{credentials:?}").contains("secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `None` is the default user.
    pub(crate) user: Option<String>,
    pub(crate) password: String,
}

impl Credentials {
    /// Makes the credentials of a named user.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// Makes the credentials of the user `default`, for a server with `requirepass`.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }
}

impl fmt::Debug for Credentials {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Credentials that are on their way.
type Answer = Pin<Box<dyn Future<Output = Result<Credentials, Cause>> + Send>>;

/// Where the credentials of each new connection come from.
#[derive(Clone)]
pub(crate) struct CredentialsSource(Arc<dyn Fn() -> Answer + Send + Sync>);

impl CredentialsSource {
    pub(crate) fn new<F, A, E>(source: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self(Arc::new(move || {
            let answer = source();
            Box::pin(async move { answer.await.map_err(|error| Cause::from(error.into())) })
        }))
    }

    #[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "memory asks for none"))]
    pub(crate) fn ask(&self) -> Answer {
        (self.0)()
    }
}
