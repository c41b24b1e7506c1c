//! The secrets of a new connection: values, files, or results of the user's functions.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinError;

use crate::core::backend::Fault;
use crate::core::process::clock::{timer_on, within};
use crate::core::process::together::first_of;
use crate::core::types::error::{Cause, LockError, LockErrorKind};
use crate::core::types::secret::Secret;

#[derive(Clone)]
pub(crate) struct SecretSource<T> {
    /// `None` where the locker was given none.
    secret: Option<Secret<T>>,
    /// What it is, with the paths of files.
    pub(super) name: Arc<str>,
    calls: Arc<Semaphore>,
    /// Runs those calls; its timers keep the deadlines.
    runtime: Handle,
}

impl<T: Clone + Send + 'static> SecretSource<T> {
    /// # Errors
    /// When a value or a file is not valid, or cannot be read.
    pub(crate) fn new(
        what: &str,
        secret: Option<Secret<T>>,
        runtime: Handle,
        validate: impl FnOnce(&T) -> Result<(), String>,
    ) -> Result<Self, LockError> {
        let paths = secret.as_ref().map(Secret::paths).filter(|paths| !paths.is_empty());
        let paths = paths.map(|paths| format!(" ({paths})")).unwrap_or_default();
        let name = format!("the {what}{paths}");
        if let Some(at_hand) = secret.as_ref().and_then(Secret::at_hand) {
            let valid = at_hand.map_err(|error| error.to_string());
            let valid = valid.and_then(|secret| validate(&secret));
            valid.map_err(|flaw| invalid(format!("{name}: {flaw}")))?;
        }
        let calls = Arc::new(Semaphore::new(MAX_CALLS));
        Ok(Self { secret, name: name.into(), calls, runtime })
    }

    #[cfg(feature = "tls-no-provider")]
    pub(super) fn is_given(&self) -> bool {
        self.secret.is_some()
    }

    /// The current secret; `None` if the locker was given none.
    ///
    /// # Errors
    /// When the files cannot be read, or the user's function fails or returns none within the limit.
    pub(super) async fn get(&self, limit: Duration) -> Result<Option<T>, Fault> {
        let Some(secret) = &self.secret else { return Ok(None) };
        if secret.paths().is_empty()
            && let Some(Ok(value)) = secret.at_hand()
        {
            return Ok(Some(value));
        }
        match within(|| timer_on(&self.runtime, limit), self.ask(secret.clone())).await {
            Some(answer) => answer.map(Some).map_err(|cause| self.refuse(cause)),
            None => Err(Fault::unavailable(format!("{}: no answer within {limit:?}", self.name))),
        }
    }

    pub(super) fn refuse(&self, cause: Cause) -> Fault {
        let message = format!("{}: {cause}", self.name).replace(['\n', '\r'], " ");
        Fault { source: Some(cause), ..Fault::new(LockErrorKind::Refused, message) }
    }

    /// Gets the secret on its own thread: that may block, and a runtime's thread may be the one that renews leases. If
    /// this is dropped, the user's function ends at its next `await`.
    ///
    /// See "Why are credentials requested for every new connection (`AUTH`), on a thread of their own?" in DESIGN.md.
    async fn ask(&self, secret: Secret<T>) -> Result<T, Cause> {
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
            context.block_on(first_of(pin!(secret.ask()), pin!(abandoned)))
        });
        let answer = asking.await.map_err(panicked)?;
        drop(caller);
        answer
    }
}

pub(super) fn invalid(message: String) -> LockError {
    LockError::of_flaw(LockErrorKind::InvalidOption, message)
}

fn panicked(error: JoinError) -> Cause {
    let Ok(panic) = error.try_into_panic() else {
        return words("the runtime ended");
    };
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words(format!("it panicked: {}", text.unwrap_or("without words")))
}

pub(super) fn words(words: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    words.into().into()
}

/// How many calls may run at once: a hanging one keeps its thread.
const MAX_CALLS: usize = 32;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{RecvError, channel};

    use tokio::sync::mpsc::unbounded_channel;
    use tokio::task::JoinSet;

    use super::*;
    use crate::core::background::background;

    #[tokio::test]
    async fn no_more_calls_than_threads_are_spared_run_at_a_time() {
        let (hanging, end) = channel::<Infallible>();
        let end = Mutex::new(end);
        let (started, mut starts) = unbounded_channel();
        let secret = Secret::from_fn(move || {
            started.send(()).unwrap();
            let _end: Result<Infallible, RecvError> = end.lock().unwrap().recv();
            async { Ok::<_, Infallible>("word") }
        });
        let limit = Duration::from_secs(60);
        let valid = |_: &_| Ok(());
        let source =
            SecretSource::new("credentials", Some(secret), background().unwrap(), valid).unwrap();
        let mut running = JoinSet::new();
        for _ in 0..=MAX_CALLS {
            let source = source.clone();
            running.spawn(async move { source.get(limit).await.is_ok() });
        }
        for _ in 0..MAX_CALLS {
            starts.recv().await.unwrap();
        }
        assert_eq!(source.calls.available_permits(), 0);
        drop(hanging);
        assert!(running.join_all().await.into_iter().all(|is_answered| is_answered));
    }
}
