//! Callbacks that fail, panic, block, or never answer.

use lockable_runtime::LockErrorKind;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::mem;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::check::{Code, Severity};
use lockable_runtime::{Credentials, LockError, LockGuard, Locker, Secret, distributed_lock};
use lockable_tests::{Proxy, Server, wait};

use super::{counted, disconnect, guarded, pair};
use crate::events;
use crate::support::{LIMIT, LONG, Runs, ample, connect_ample, everything};

/// An error of the user's own.
#[derive(Debug)]
struct NoToken;

impl fmt::Display for NoToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no token:\nthe role is missing")
    }
}

impl Error for NoToken {}

/// Fails at the calls of these numbers.
fn failing(server: &Server, numbers: &'static [u64]) -> (Locker, Runs) {
    let calls = Runs::default();
    let counter = calls.clone();
    let source = move || {
        let fails = numbers.contains(&counter.next());
        async move { if fails { Err(NoToken) } else { Ok(Credentials::new("app", "word")) } }
    };
    (ample(&server.url()).credentials(Secret::from_fn(source)).connect_lazy().unwrap(), calls)
}

#[tokio::test]
async fn a_callback_that_fails_is_shown() {
    let server = guarded("word").start();
    let (locker, calls) = failing(&server, &[1]);
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused && error.is_unavailable(), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(
            "the credentials: no token: the role is missing; mend the file, or the function"
        ),
        "{text}"
    );
    assert!(error.source().unwrap().is::<NoToken>(), "{}", everything(&error));
    pair(&locker).await;
    assert_eq!(calls.count(), 2);
}

#[tokio::test]
async fn a_check_finds_a_callback_that_fails() {
    let server = guarded("word").start();
    let (locker, _) = failing(&server, &[1]);
    let report = locker.check().await;
    let findings: Vec<_> = report.findings().collect();
    let [finding] = findings[..] else { panic!("{report}") };
    assert_eq!((finding.code(), finding.severity()), (Code::Credentials, Severity::Error));
    assert!(finding.message().contains("the role is missing"), "{report}");
    assert!(locker.check().await.is_ok());
}

/// A holder is not lost because a token was missing for a moment.
#[tokio::test]
async fn a_failure_is_over_with_the_next_opening() {
    let server = guarded("word").start();
    let (locker, calls) = failing(&server, &[2, 3]);
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    disconnect(&server);
    assert!(guard.lease().extend(LIMIT).await.unwrap_err().kind() == LockErrorKind::Refused);
    wait::until_async(LIMIT, async || locker.inspect("k").await.is_ok()).await;
    assert!(calls.count() >= 4 && guard.lease().is_held());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_callback_that_panics_leaves_no_call_hanging() {
    let server = guarded("word").start();
    let calls = Runs::default();
    let counter = calls.clone();
    // Before its future, in its future, and for the connection of waiters.
    let source = move || {
        let number = counter.next();
        assert!(number != 1, "a panic of the test's own");
        async move {
            assert!(!matches!(number, 2 | 4), "a panic of the test's own");
            Ok::<_, LockError>(Credentials::new("app", "word"))
        }
    };
    let locker = ample(&server.url()).credentials(Secret::from_fn(source)).connect_lazy().unwrap();
    for _ in 0..2 {
        let error = wait::ends(locker.lock("k").acquire()).await.unwrap_err();
        assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
        let words = "the credentials: it panicked: a panic of the test's own";
        assert!(error.to_string().contains(words), "{error}");
    }
    let guard = locker.lock("k").acquire().await.unwrap();
    let error = wait::ends(locker.lock("k").acquire()).await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    let waiting = tokio::spawn(locker.lock("k").acquire());
    wait::until_async(LIMIT, async || calls.count() >= 5).await;
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

/// Goal: a callback that hangs costs its deadline, and is given up by then.
#[tokio::test]
async fn a_callback_that_never_answers_is_given_up() {
    struct Dropped(mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    let server = guarded("word").start();
    let (sender, dropped) = mpsc::channel();
    let source = move || {
        let guard = Dropped(sender.clone());
        async move {
            let _guard = guard;
            pending::<Result<Credentials, LockError>>().await
        }
    };
    let locker = ample(&server.url()).connect_deadline(Duration::from_secs(8));
    let locker = locker.credentials(Secret::from_fn(source)).connect_lazy().unwrap();
    let error = wait::ends(locker.lock("k").try_acquire()).await.unwrap_err();
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error:?}");
    let words = "the credentials: no answer within 6s";
    assert!(error.to_string().contains(words), "{error}");
    dropped.recv_timeout(LIMIT).unwrap();
    let report = wait::ends(locker.check()).await;
    assert_eq!(report.findings().next().unwrap().code(), Code::Credentials, "{report}");
}

/// Goal: a callback that blocks its thread delays no renewal of other locks.
/// Method: it blocks for the subscription of a waiter, which the background opens, while the background renews.
#[tokio::test]
async fn a_callback_that_blocks_delays_no_renewal() {
    const LEASE: Duration = Duration::from_secs(8);
    let server = guarded("word").start();
    let (calls, (go, blocked)) = (Runs::default(), mpsc::channel::<()>());
    let (counter, blocked) = (calls.clone(), Arc::new(Mutex::new(blocked)));
    let source = move || {
        if counter.next() > 1 {
            assert!(blocked.lock().unwrap().recv().is_err(), "nothing is sent");
        }
        async { Ok::<_, LockError>(Credentials::new("app", "word")) }
    };
    let locker = ample(&server.url()).connect_deadline(LONG).credentials(Secret::from_fn(source));
    let locker = locker.connect().await.unwrap();
    let other = connect_ample(&server.url_with("app", "word", 0)).await;
    // So that the first renewal need not open the connection of the background.
    let in_background = other.clone();
    tokio::task::spawn_blocking(move || sync(&in_background)).await.unwrap().unwrap();
    let guard = other.lock("k").expire(LEASE).renew().acquire().await.unwrap();
    is_renewed(&guard).await;
    let waiting = tokio::spawn(locker.lock("k").acquire());
    wait::until_async(LIMIT, async || calls.count() > 1).await;
    for _ in 0..2 {
        is_renewed(&guard).await;
    }
    drop((go, guard));
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[distributed_lock(key = "other", locker = locker.clone())]
fn sync(locker: &Locker) -> Result<(), LockError> {
    Ok(())
}

/// Waits until what remains of the lease grows.
async fn is_renewed(guard: &LockGuard) {
    let mut last = guard.lease().remaining();
    let grows = async || {
        let now = guard.lease().remaining();
        assert!(!now.is_zero(), "{:?}", guard.lease().lost().await);
        mem::replace(&mut last, now) < now
    };
    wait::until_async(LIMIT, grows).await;
}

#[tokio::test]
async fn a_login_that_is_refused_names_the_callback() {
    const CANARY: &str = "canary-of-a-callback";
    events::keep_secret(CANARY);
    let server = guarded("word").start();
    let locker = counted(ample(&server.url()), CANARY).0;
    let debug = format!("{locker:?} {:?}", Credentials::new("app", CANARY));
    let locker = locker.connect_lazy().unwrap();
    let error = locker.lock("k").acquire().await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("`LockerBuilder::credentials` gave"), "{error}");
    let report = locker.check().await;
    assert_eq!(report.findings().next().unwrap().code(), Code::Refused, "{report}");
    assert!(report.to_string().contains("`LockerBuilder::credentials` gave"), "{report}");
    let shown = [debug, format!("{locker:?}"), everything(&error), format!("{report} {report:?}")];
    assert!(shown.iter().all(|text| !text.contains(CANARY)), "{shown:?}");
    assert!(events::leaks().is_empty(), "{:?}", events::leaks());
}

/// Goal: where a server quotes a login that it does not know, the password in it is not shown.
/// Method: the command arrives misspelt, so that a real server refuses it in its own words.
#[tokio::test]
async fn a_quoted_login_shows_no_password() {
    const CANARY: &str = "canary-of-a-login";
    let server = Server::start();
    let proxy = Proxy::start(&server);
    proxy.misspell(Some("AUTH"));
    let error = counted(ample(&proxy.url()), CANARY).0.connect().await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::Refused && !everything(&error).contains(CANARY),
        "{}",
        everything(&error)
    );
}
