//! Holders are asked to stop, and locks are taken away.

mod hearing;
mod load;
mod support;

use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::net::TcpStream;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Forced, Revoked};
use lockable_tests::{Proxy, Server};

use self::support::{ask, held, listener, listens, stopped};
use crate::support::{LIMIT, LONG, SECOND, connect, start, until};

#[tokio::test]
async fn an_asked_holder_releases_under_its_lock() {
    let server = Server::start();
    let (holder, operator) = (connect(&server.url()).await, connect(&server.url()).await);
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let seen = listens(&server, &operator, "k").await;
    let waiting = operator.lock("k").acquire();
    let body = async {
        let error = guard.lease().lost().await;
        assert!(error.is_revoked() && error.to_string().ends_with(": migration 42"), "{error}");
        assert!(!guard.lease().is_held() && !guard.lease().is_lost());
        assert_eq!(held(&operator, "k").await.holder().id(), seen.holder().id());
        guard.release().await.unwrap();
    };
    let admin = operator.admin();
    let asking = async { admin.revoke(&seen, "migration 42", LIMIT).await.unwrap() };
    let (waiting, (), revoked) = tokio::join!(waiting, body, asking);
    assert!(matches!(revoked, Revoked::Released { .. }), "{revoked:?}");
    let next = waiting.unwrap();
    // The next holder is another one.
    assert_eq!(admin.revoke(&seen, "late", LIMIT).await.unwrap(), Revoked::Changed);
    assert!(next.lease().is_held());
    next.release().await.unwrap();
    assert_eq!(admin.revoke(&seen, "late", LIMIT).await.unwrap(), Revoked::Changed);
}

/// Goal: a call that waits for the last permit does not hear that it is to give up the other one.
#[tokio::test]
async fn a_call_that_waits_for_the_rest_of_its_permits_stops() {
    let server = Server::start();
    let (caller, operator) = (connect(&server.url()).await, connect(&server.url()).await);
    let _first = operator.lock("k").permits(2).acquire().await.unwrap();
    let all = tokio::spawn(caller.lock("k").all_permits(2).acquire());
    let admin = operator.admin();
    until(async || admin.holder("{k}#2").await.unwrap().is_some()).await;
    let seen = listens(&server, &operator, "{k}#2").await;
    let revoked = admin.revoke(&seen, "why", LIMIT).await.unwrap();
    assert!(matches!(revoked, Revoked::Released { .. }), "{revoked:?}");
    let error = all.await.unwrap().unwrap_err();
    assert!(error.is_revoked(), "{error}");
}

/// Method: no connection can be opened at first, so that a slow test does not find that it listens already.
#[tokio::test]
async fn a_young_hold_is_asked_once_it_listens() {
    let server = Server::start();
    let proxy = Proxy::start(&server);
    let (holder, operator) = (connect(&proxy.url()).await, connect(&server.url()).await);
    proxy.turn_away();
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let (admin, seen) = (operator.admin(), held(&operator, "k").await);
    let at_once = admin.revoke(&seen, "why", Duration::ZERO).await.unwrap();
    assert!(matches!(at_once, Revoked::NotListening { .. }), "{at_once:?}");
    proxy.accept();
    ask(&operator, &seen, guard).await;
}

#[tokio::test]
async fn a_holder_that_stays_keeps_its_lock() {
    let (server, locker, admin) = start().await;
    let guard = locker.lock("k").expire(3 * SECOND).renew().acquire().await.unwrap();
    let seen = listens(&server, &locker, "k").await;
    let asked = locker.admin().revoke(&seen, "why", SECOND).await.unwrap();
    assert!(matches!(asked, Revoked::NotReleased { waited } if waited >= SECOND), "{asked:?}");
    // It is renewed as before.
    let renewals = admin.command_calls("pexpire");
    until(async || admin.command_calls("pexpire") >= renewals + 2).await;
    assert!(!guard.lease().is_held() && !guard.lease().is_lost());
    assert_eq!(held(&locker, "k").await.holder().id(), seen.holder().id());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_holder_that_cannot_be_asked_is_named() {
    let (server, locker, admin) = start().await;
    // Someone who reads every message is no holder.
    let mut reader = TcpStream::connect(server.addr()).unwrap();
    reader.write_all(b"PSUBSCRIBE *\r\n").unwrap();
    until(async || admin.command::<u64>(&["PUBSUB", "NUMPAT"]) == 1).await;
    let guard = locker.lock("unrenewed").acquire().await.unwrap();
    let kept = locker.lock("kept").min_hold(LONG).acquire().await.unwrap();
    kept.release().await.unwrap();
    let life = LONG.as_millis().to_string();
    admin.command::<()>(&["SET", "disLock:foreign", "another library's", "PX", &life]);
    admin.command::<()>(&["SET", "disLock:endless", "another library's"]);
    let kinds = [
        ("unrenewed", HolderKind::Exclusive),
        ("kept", HolderKind::KeptByMinHold),
        ("foreign", HolderKind::Foreign),
        ("endless", HolderKind::Foreign),
    ];
    for (key, kind) in kinds {
        let seen = held(&locker, key).await;
        assert_eq!(seen.holder().kind(), kind, "{key}");
        let asked = locker.admin().revoke(&seen, "why", LIMIT).await.unwrap();
        let Revoked::NotListening { remaining } = asked else { panic!("{key}: {asked:?}") };
        assert_eq!(remaining.is_none(), key == "endless");
        assert!(remaining.is_none_or(|rest| rest <= LONG && rest > LONG / 2), "{remaining:?}");
    }
    assert!(guard.lease().is_held());
    assert_eq!(admin.command_calls("subscribe"), 0);
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lock_that_is_taken_away_goes_to_the_queue() {
    // A holder that notices the loss by itself may be faster than the message.
    let rules = "on >secret ~* &* +@all -client|tracking";
    let server = Server::builder().user("app", rules).start();
    let holder = connect(&server.url_with("app", "secret", 0)).await;
    let operator = connect(&server.url()).await;
    let guard = holder.lock("k").renew().acquire().await.unwrap();
    let seen = listens(&server, &operator, "k").await;
    let waiting = tokio::spawn(operator.lock("k").acquire());
    until(async || held(&operator, "k").await.queued() == 1).await;
    let admin = operator.admin();
    assert_eq!(admin.force_release(&seen, "its host is gone").await.unwrap(), Forced::Released);
    let next = waiting.await.unwrap().unwrap();
    let error = guard.lease().lost().await;
    assert!(error.is_lost() && !error.is_taken(), "{error}");
    assert!(error.to_string().ends_with("an operator took it away: its host is gone"), "{error}");
    let error = guard.release().await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("an operator"), "{error}");
    // The present holder is not meant.
    assert_eq!(admin.force_release(&seen, "again").await.unwrap(), Forced::Changed);
    assert!(next.lease().is_held());
    next.release().await.unwrap();
    assert_eq!(admin.force_release(&seen, "again").await.unwrap(), Forced::Changed);
    assert_eq!(server.admin().keys("*"), server.admin().keys("lockable:fence:*"));
}

/// Goal: a lock that is taken from a holder whom no one has looked at.
#[tokio::test]
async fn a_later_holder_is_not_taken_for_an_earlier_one() {
    let server = Server::start();
    for url in [server.url(), "memory://".to_owned()] {
        is_left_to_a_later_holder(&url).await;
    }
}

async fn is_left_to_a_later_holder(url: &str) {
    let locker = connect(url).await;
    let first = locker.lock("k").acquire().await.unwrap();
    let seen = held(&locker, "k").await;
    first.release().await.unwrap();
    let next = locker.lock("k").acquire().await.unwrap();
    let forced = locker.admin().force_release(&seen, "late").await.unwrap();
    assert_eq!(forced, Forced::Changed);
    assert!(next.lease().is_held());
    next.release().await.unwrap();
}

/// Goal: a lock that moves on within the process under the owner token that the operator waits for.
/// Method: the lock came from the queue just now, so its turn could be passed to the next call of the process.
#[tokio::test]
async fn a_stopped_holder_passes_its_turn_to_no_one() {
    let server = Server::start();
    passes_no_turn_on(&server.url()).await;
}

/// There a turn does not grow old while the clock is paused.
#[tokio::test(start_paused = true)]
async fn a_stopped_holder_in_memory_passes_its_turn_to_no_one() {
    passes_no_turn_on("memory://stopped").await;
}

async fn passes_no_turn_on(url: &str) {
    let operator = connect(url).await;
    let holder = listener(url, &operator, "first").await;
    let before = operator.lock("k").acquire().await.unwrap();
    let first = tokio::spawn(holder.lock("k").renew().acquire());
    until(async || held(&operator, "k").await.queued() == 1).await;
    before.release().await.unwrap();
    let first = first.await.unwrap().unwrap();
    let mut second = pin!(holder.lock("k").renew().acquire());
    let is_waiting = poll_fn(|cx| Poll::Ready(second.as_mut().poll(cx).is_pending())).await;
    assert!(is_waiting);
    let (admin, seen) = (operator.admin(), held(&operator, "k").await);
    stopped(&operator, &seen, &first).await;
    first.release().await.unwrap();
    let second = second.await.unwrap();
    assert_ne!(held(&operator, "k").await.holder().id(), seen.holder().id());
    assert_eq!(admin.revoke(&seen, "late", LIMIT).await.unwrap(), Revoked::Changed);
    assert!(second.lease().is_held());
    second.release().await.unwrap();
}

/// Goal: a message that comes late, or that others send, stops no one who is not meant.
#[tokio::test]
async fn messages_of_others_stop_no_one() {
    let (server, locker, admin) = start().await;
    let guard = locker.lock("k").renew().acquire().await.unwrap();
    let process = listens(&server, &locker, "k").await.holder().process().unwrap();
    let owner = admin.get("disLock:k").unwrap();
    let channel = format!("lockable:revoke:{process}");
    let before = owner.replacen('.', ".1", 1);
    let long = format!("revoke\n{owner}\n{}\ndisLock:k", "x".repeat(10_000));
    let texts = [
        String::new(),
        "\n\n\n".to_owned(),
        long,
        format!("stop\n{owner}\nwhy\ndisLock:k"),
        format!("revoke\n{owner}\nwhy\ndisLock:other"),
        format!("revoke\n{before}\nwhy\ndisLock:k"),
        format!("taken\n{before}\nwhy\ndisLock:k"),
        format!("taken\n{owner}"),
    ];
    for text in &texts {
        assert_eq!(admin.command::<u64>(&["PUBLISH", &channel, text]), 1);
    }
    let elsewhere = format!("other:revoke:{process}");
    let text = format!("revoke\n{owner}\nwhy\ndisLock:k");
    assert_eq!(admin.command::<u64>(&["PUBLISH", &elsewhere, &text]), 0);
    // Messages arrive in their order: this one would be the last.
    let other = locker.lock("last").renew().acquire().await.unwrap();
    let last = admin.get("disLock:last").unwrap();
    admin.command::<()>(&["PUBLISH", &channel, &format!("revoke\n{last}\n\ndisLock:last")]);
    assert!(other.lease().lost().await.is_revoked());
    assert!(guard.lease().is_held() && guard.release().await.is_ok());
    other.release().await.unwrap();
}

#[tokio::test]
async fn a_sync_body_hears_that_it_is_asked() {
    let server = Server::start();
    let (locker, operator) = (connect(&server.url()).await, connect(&server.url()).await);
    let body = tokio::task::spawn_blocking(move || support::works_while_held(&locker));
    until(async || operator.admin().holder("sync").await.unwrap().is_some()).await;
    let seen = listens(&server, &operator, "sync").await;
    let asked = operator.admin().revoke(&seen, "why", LIMIT).await.unwrap();
    assert!(matches!(asked, Revoked::Released { .. }), "{asked:?}");
    assert_eq!(body.await.unwrap().unwrap(), 7);
}
