//! With which user and password a connection logs in: those of the URL, or what the builder was given.

use std::time::Duration;

use ::redis::{ConnectionInfo, RedisConnectionInfo};
use tokio::runtime::Handle;

use super::secrets::Source;
use crate::backend::Fault;
use crate::backend::redis::fault;
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::secret::Secret;

/// With what one connection logs in; `None` is what the URL says.
pub(crate) struct Login(Option<Credentials>);

impl Login {
    /// Nothing stays of the user and the password that were there.
    pub(crate) fn put_into(&self, info: ConnectionInfo) -> ConnectionInfo {
        let Some(Credentials { user, password }) = self.0.clone() else { return info };
        let before = info.redis_settings();
        let settings = RedisConnectionInfo::default().set_db(before.db());
        let settings = settings.set_protocol(before.protocol()).set_password(password);
        // Without a user, the password alone is sent, as proxies take it that know no users.
        let settings = match user.filter(|user| !user.is_empty()) {
            Some(user) => settings.set_username(user),
            None => settings,
        };
        info.set_redis_settings(settings)
    }

    /// What to do where the server refuses it; nothing more than usual where it is by the URL.
    pub(crate) fn advice(&self) -> &'static str {
        if self.0.is_some() { fault::CALLBACK } else { "" }
    }
}

/// Gets a login, once for each connection that is opened.
///
/// See "Why are credentials requested for every new connection (`AUTH`)?" in DESIGN.md.
#[derive(Clone)]
pub(crate) struct Logins {
    source: Source<Credentials>,
    limit: Duration,
}

impl Logins {
    /// For connections that have to be open within that time: a quarter of it is for logging in.
    ///
    /// # Errors
    /// When the credentials are in files that cannot be read or are not valid.
    pub(crate) fn new(
        method: &'static str,
        secret: Option<Secret<Credentials>>,
        runtime: Handle,
        deadline: Duration,
    ) -> Result<Self, LockError> {
        let source = Source::new(method, secret, runtime, |_| Ok(()))?;
        Ok(Self { source, limit: deadline / 4 * 3 })
    }

    /// # Errors
    /// When there are no credentials in time.
    pub(crate) async fn next(&self) -> Result<Login, Fault> {
        self.source.get(self.limit).await.map(Login)
    }
}
