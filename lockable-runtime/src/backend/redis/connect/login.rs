//! With which user and password a connection logs in: those of the URL, or what the user's callback gives.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{ConnectionInfo, RedisConnectionInfo};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinError;

use crate::backend::Fault;
use crate::backend::redis::fault;
use crate::types::clock::{timer_on, within};
use crate::types::credentials::{Credentials, CredentialsSource};
use crate::types::error::Cause;
use crate::types::together::first_of;

/// With what one connection logs in; `None` is what the URL says.
pub(crate) struct Login(Option<Credentials>);

impl Login {
    pub(crate) fn put_into(&self, info: ConnectionInfo) -> ConnectionInfo {
        with_credentials(info, self.0.clone())
    }

    /// What to do where the server refuses it; nothing more than usual where it is by the URL.
    pub(crate) fn advice(&self) -> &'static str {
        if self.0.is_some() { fault::CALLBACK } else { "" }
    }
}

/// Nothing stays of the user and the password that were there.
pub(super) fn with_credentials(
    info: ConnectionInfo,
    credentials: Option<Credentials>,
) -> ConnectionInfo {
    let Some(Credentials { user, password }) = credentials else { return info };
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

/// Asks for a login, once for each connection that is opened.
///
/// See "Why are credentials requested for every new connection (`AUTH`)?" in DESIGN.md.
#[derive(Clone)]
pub(super) struct Logins {
    source: Option<CredentialsSource>,
    /// The calls of the user's function that may run at the same time.
    calls: Arc<Semaphore>,
    /// The runtime in whose context they run, and whose timers keep the deadline.
    runtime: Handle,
    limit: Duration,
}

impl Logins {
    pub(super) fn new(source: Option<CredentialsSource>, runtime: Handle, limit: Duration) -> Self {
        Self { source, calls: Arc::new(Semaphore::new(MAX_CALLS)), runtime, limit }
    }

    /// # Errors
    /// When the user's function gives no credentials in time.
    pub(super) async fn next(&self, server: &str) -> Result<Login, Fault> {
        let Some(source) = &self.source else { return Ok(Login(None)) };
        let limit = self.limit;
        match within(|| timer_on(&self.runtime, limit), self.ask(source.clone())).await {
            Some(Ok(credentials)) => Ok(Login(Some(credentials))),
            Some(Err(error)) => Err(fault::of_credentials(server, error)),
            None => Err(fault::late_credentials(server, limit)),
        }
    }

    /// Calls the user's function on a thread of its own: it may block, and the thread of a runtime may be the one
    /// that renews leases. Once this is dropped, the call ends at its next `await`.
    ///
    /// See "Why does the credentials function run on a thread of its own?" in DESIGN.md.
    async fn ask(&self, source: CredentialsSource) -> Result<Credentials, Cause> {
        let ended = |_| words("there are no more");
        let call = Arc::clone(&self.calls).acquire_owned().await.map_err(ended)?;
        let context = self.runtime.clone();
        let (caller, given_up) = oneshot::channel::<Infallible>();
        let asking = self.runtime.spawn_blocking(move || {
            let _call = call;
            let abandoned = async {
                drop(given_up.await);
                Err(words("it was abandoned"))
            };
            context.block_on(first_of(pin!(source.ask()), pin!(abandoned)))
        });
        let answer = asking.await.map_err(panicked)?;
        drop(caller);
        answer
    }
}

fn panicked(error: JoinError) -> Cause {
    let Ok(panic) = error.try_into_panic() else {
        return words("the runtime ended");
    };
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words(format!("it panicked: {}", text.unwrap_or("without words")))
}

fn words(words: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    words.into().into()
}

/// How many calls may run at the same time: one that hangs keeps its thread.
const MAX_CALLS: usize = 32;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{RecvError, channel};

    use tokio::sync::mpsc::unbounded_channel;
    use tokio::task::JoinSet;

    use super::*;
    use crate::background::background;

    /// Each of them keeps its thread for as long as it hangs.
    #[tokio::test]
    async fn no_more_calls_than_threads_are_spared_run_at_a_time() {
        let (hanging, end) = channel::<Infallible>();
        let end = Mutex::new(end);
        let (started, mut starts) = unbounded_channel();
        let source = CredentialsSource::new(move || {
            started.send(()).unwrap();
            let _end: Result<Infallible, RecvError> = end.lock().unwrap().recv();
            async { Ok::<_, Infallible>(Credentials::password("word")) }
        });
        let limit = Duration::from_secs(60);
        let logins = Logins::new(Some(source), background().unwrap(), limit);
        let mut running = JoinSet::new();
        for _ in 0..=MAX_CALLS {
            let logins = logins.clone();
            running.spawn(async move { logins.next("server").await.is_ok() });
        }
        for _ in 0..MAX_CALLS {
            starts.recv().await.unwrap();
        }
        assert_eq!(logins.calls.available_permits(), 0);
        drop(hanging);
        assert!(running.join_all().await.into_iter().all(|is_answered| is_answered));
    }
}
