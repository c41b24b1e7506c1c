//! The user and password of a connection: those of the URL, or of the builder.

use std::time::Duration;

use ::redis::{ConnectionInfo, RedisConnectionInfo};

use super::secrets::SecretSource;
use crate::core::backend::Fault;
use crate::core::types::credentials::Credentials;

/// The login of one connection; `None` is what the URL says.
pub(crate) struct Login(Option<Credentials>);

impl Login {
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

    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }
}

impl SecretSource<Credentials> {
    /// The login of a connection; getting it may take a quarter of the connect deadline.
    ///
    /// See "Why are credentials requested for every new connection (`AUTH`), on a thread of their own?" in DESIGN.md.
    ///
    /// # Errors
    /// When there are no credentials in time.
    pub(crate) async fn login(&self, deadline: Duration) -> Result<Login, Fault> {
        self.get(deadline / 4 * 3).await.map(Login)
    }
}
