//! What holds on every backend.

use lockable_runtime::LockErrorKind;
use std::time::{Duration, SystemTime};

use lockable_runtime::admin::Forced;
use lockable_runtime::{HeldSince, HolderKind};
use lockable_runtime::{Locker, LockerBuilder, RequestId};
use lockable_tests::{Cluster, Server};

use super::{all, names};
use crate::support::{LIMIT, LONG, builder, until};

/// A claim about a store that is empty, or whose other keys have other prefixes.
macro_rules! every_backend {
    ($($claim:ident,)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $claim() {
                super::$claim(super::builder(concat!("memory://", stringify!($claim)))).await;
            })*
        }

        mod redis {
            $(#[tokio::test]
            async fn $claim() {
                let server = super::Server::start();
                super::$claim(super::builder(&server.url())).await;
            })*
        }

        mod resp3 {
            $(#[tokio::test]
            async fn $claim() {
                let server = super::Server::start();
                let url = format!("{}?protocol=resp3", server.url());
                super::$claim(super::builder(&url)).await;
            })*
        }

        mod cluster {
            $(#[tokio::test]
            async fn $claim() {
                let cluster = super::Cluster::shared();
                super::$claim(super::builder(&cluster.url())).await;
            })*
        }
    };
}

every_backend! {
    each_held_lock_is_listed_once,
    a_glob_is_about_the_name,
    a_prefix_is_no_glob,
    a_holder_says_whose_and_since_when,
    a_lock_from_the_queue_says_so,
    a_kept_lock_is_listed_as_such,
    a_queue_is_listed_in_its_order,
    permits_are_listed_with_the_queue_of_all,
    a_permit_that_is_taken_away_goes_to_the_first_waiter,
    a_process_is_listed_by_its_name,
    a_key_that_cannot_be_is_refused,
    a_held_lock_can_be_taken_away,
    a_kept_lock_can_be_taken_away,
    a_kept_lock_is_taken_away_for_its_waiter,
    a_lock_that_is_free_meanwhile_stays_free,
    a_lock_that_is_kept_meanwhile_is_taken_away,
}

async fn each_held_lock_is_listed_once(store: LockerBuilder) {
    let locker = store.clone().prefix("listed:").connect().await.unwrap();
    let other = store.prefix("other:").connect().await.unwrap();
    assert_eq!(names(&locker).await, [""; 0]);
    let mut held = Vec::new();
    for number in 0..20 {
        held.push(locker.lock(format!("{number:02}")).acquire().await.unwrap());
    }
    let _other = other.lock("a").acquire().await.unwrap();
    locker.lock("free").run(async {}).await.unwrap();
    let found = all(locker.admin().locks()).await;
    let expected: Vec<_> = (0..20).map(|number| format!("{number:02}")).collect();
    assert_eq!(found.keys().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(found["07"].key().as_str(), "listed:07");
    assert!(locker.admin().count().await.unwrap() >= 21);
}

async fn a_glob_is_about_the_name(store: LockerBuilder) {
    let locker = store.prefix("glob:").connect().await.unwrap();
    let mut held = Vec::new();
    for name in ["order:1", "order:22", "report:1", "glob:1"] {
        held.push(locker.lock(name).acquire().await.unwrap());
    }
    for (glob, expected) in [
        ("order:*", &["order:1", "order:22"][..]),
        ("[or]*:[^2]", &["order:1", "report:1"]),
        ("glob:*", &["glob:1"]),
        ("1", &[]),
    ] {
        let found = all(locker.admin().locks().matching(glob)).await;
        assert_eq!(found.into_keys().collect::<Vec<_>>(), expected, "{glob}");
    }
}

async fn a_prefix_is_no_glob(store: LockerBuilder) {
    let strange = store.clone().prefix("p*[q]?\\^:").connect().await.unwrap();
    let plain = store.prefix("ppqx\\^:").connect().await.unwrap();
    let _guards =
        [strange.lock("a").acquire().await.unwrap(), plain.lock("b").acquire().await.unwrap()];
    assert_eq!(names(&strange).await, ["a"]);
    assert_eq!(names(&plain).await, ["b"]);
}

async fn a_holder_says_whose_and_since_when(store: LockerBuilder) {
    let locker = store.prefix("whose:").connect().await.unwrap();
    let before = SystemTime::now();
    let first = locker.lock("a").acquire().await.unwrap();
    let id = RequestId::new("checkout 7");
    let _second = id.scope(async { locker.lock("b").acquire().await.unwrap() }).await;
    let found = all(locker.admin().locks()).await;
    let (one, other) = (found["a"].holder(), found["b"].holder());
    let micro = Duration::from_micros(1);
    let Some(HeldSince::At(since)) = one.held_since() else { panic!("{one:?}") };
    assert!(since + micro >= before && since <= SystemTime::now(), "{since:?}");
    assert!(other.held_since() > one.held_since());
    assert!(one.process().is_some() && one.process() == other.process());
    assert_eq!([one.kind(), other.kind()], [HolderKind::Exclusive; 2]);
    assert_eq!((one.request_id(), other.request_id()), (None, Some("checkout 7")));
    assert!(one.remaining().is_some_and(|rest| rest > LONG / 2 && rest <= LONG));
    // One lock, asked for alone, is as the listing has it.
    let alone = locker.admin().holder("a").await.unwrap().unwrap();
    assert_eq!((alone.holder().id(), alone.name(), alone.queued()), (one.id(), "a", 0));
    assert_eq!(locker.inspect("a").await.unwrap().unwrap().id(), one.id());
    first.release().await.unwrap();
    assert!(locker.admin().holder("a").await.unwrap().is_none());
    let _next = locker.lock("a").acquire().await.unwrap();
    let next = locker.inspect("a").await.unwrap().unwrap();
    assert_ne!(next.id(), one.id());
    let shown = format!("{found:?}{next:?}");
    let is_token = |text: &[u8]| text[..16].iter().all(u8::is_ascii_hexdigit) && text[16] == b'.';
    assert!(!shown.as_bytes().windows(17).any(is_token), "{shown}");
}

async fn a_lock_from_the_queue_says_so(store: LockerBuilder) {
    let locker = store.clone().prefix("queue:").connect().await.unwrap();
    let other = store.prefix("queue:").connect().await.unwrap();
    let guard = locker.lock("a").acquire().await.unwrap();
    let waits = other.lock("a").wait(LIMIT);
    let waiting = tokio::spawn(waits.acquire());
    until(async || queued(&locker, "a").await == 1).await;
    guard.release().await.unwrap();
    let _guard = waiting.await.unwrap().unwrap();
    let lock = locker.admin().holder("a").await.unwrap().unwrap();
    assert!(matches!(lock.holder().held_since(), Some(HeldSince::NotBefore(_))), "{lock:?}");
    assert_eq!(lock.queued(), 0);
}

async fn queued(locker: &Locker, name: &str) -> usize {
    locker.admin().holder(name).await.unwrap().map_or(0, |lock| lock.queued())
}

async fn a_kept_lock_is_listed_as_such(store: LockerBuilder) {
    let locker = store.prefix("kept:").connect().await.unwrap();
    let id = RequestId::new("nightly");
    let call = locker.lock("a").min_hold(LONG);
    id.scope(async { call.run(async {}).await.unwrap() }).await;
    let found = all(locker.admin().locks()).await;
    let holder = found["a"].holder();
    assert_eq!((holder.kind(), holder.request_id()), (HolderKind::KeptByMinHold, Some("nightly")));
    assert!(holder.process().is_some() && holder.remaining().is_some_and(|rest| rest <= LONG));
}

async fn a_queue_is_listed_in_its_order(store: LockerBuilder) {
    let locker = store.clone().prefix("waits:").connect().await.unwrap();
    let _guard = locker.lock("a").acquire().await.unwrap();
    assert!(locker.admin().queue("a").await.unwrap().is_empty());
    let mut waiting = Vec::new();
    for number in 1..=3 {
        let other = store.clone().prefix("waits:").connect().await.unwrap();
        let id = RequestId::new(number.to_string());
        waiting.push(tokio::spawn(
            id.scope(async move { other.lock("a").wait(LONG).acquire().await.map(drop) }),
        ));
        until(async || queued(&locker, "a").await == number).await;
    }
    let queue = locker.admin().queue("a").await.unwrap();
    let ids: Vec<_> = queue.iter().map(|waiter| waiter.request_id().unwrap()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert!(queue.is_sorted_by_key(|waiter| waiter.waiting_since().unwrap()));
    let process = locker.inspect("a").await.unwrap().unwrap().process();
    for waiter in &queue {
        assert_eq!((waiter.process(), waiter.is_listening()), (process, Some(true)));
    }
    // Only the lock is listed, and not its companions.
    assert_eq!(names(&locker).await, ["a"]);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    until(async || queued(&locker, "a").await == 0).await;
}

/// Two holders, each with a process of its own, and one that waits for either.
async fn permits_are_listed_with_the_queue_of_all(store: LockerBuilder) {
    let locker = store.clone().prefix("permits:").connect().await.unwrap();
    let permit = || locker.lock("a").permits(2);
    let named = |name| RequestId::new(name).scope(permit().acquire());
    let _held = [named("one").await.unwrap(), named("two").await.unwrap()];
    let other = store.prefix("permits:").connect().await.unwrap();
    let waiting = other.lock("a").permits(2).wait(LONG).acquire();
    let waiting = tokio::spawn(RequestId::new("three").scope(waiting));
    until(async || queued(&locker, "{a}#1").await == 1).await;
    let listed = all(locker.admin().locks().matching("{a}#*")).await;
    let seen: Vec<_> = listed.iter().map(|(name, held)| (&**name, held.queued())).collect();
    assert_eq!(seen, [("{a}#1", 1), ("{a}#2", 1)]);
    for (name, holder) in [("{a}#1", "one"), ("{a}#2", "two")] {
        assert_eq!(listed[name].holder().request_id(), Some(holder));
        let inspected = locker.inspect(name).await.unwrap().unwrap();
        assert_eq!(inspected.id(), listed[name].holder().id());
        let queue = locker.admin().queue(name).await.unwrap();
        let ids: Vec<_> = queue.iter().map(|waiter| waiter.request_id().unwrap()).collect();
        assert_eq!((ids, queue[0].is_listening()), (vec!["three"], Some(true)));
    }
    // Neither the queue nor the key without a number is a lock.
    assert_eq!(names(&locker).await, ["{a}#1", "{a}#2"]);
    assert!(locker.admin().holder("a").await.unwrap().is_none());
    waiting.abort();
    until(async || queued(&locker, "{a}#2").await == 0).await;
}

async fn a_permit_that_is_taken_away_goes_to_the_first_waiter(store: LockerBuilder) {
    let locker = store.clone().prefix("numbers:").connect().await.unwrap();
    let other = store.prefix("numbers:").connect().await.unwrap();
    let permit = |locker: &Locker| locker.lock("a").permits(2).renew().wait(LONG).acquire();
    let (one, two) = (permit(&locker).await.unwrap(), permit(&locker).await.unwrap());
    let waiting = tokio::spawn(permit(&other));
    until(async || queued(&locker, "{a}#2").await == 1).await;
    let admin = locker.admin();
    let seen = admin.holder("{a}#2").await.unwrap().unwrap();
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Released);
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(next.lease().key(), two.lease().key());
    assert!(two.release().await.unwrap_err().is_lost());
    one.release().await.unwrap();
    next.release().await.unwrap();
    assert!(names(&locker).await.is_empty());
}

async fn a_process_is_listed_by_its_name(store: LockerBuilder) {
    let locker = store.service_name("a b:c@d%\u{e9}").prefix("named:").connect().await.unwrap();
    let _guard = locker.lock("a").acquire().await.unwrap();
    let holder = locker.inspect("a").await.unwrap().unwrap();
    let processes = locker.admin().processes().await.unwrap();
    let named = processes.iter().find(|process| process.service() == "a b:c@d%\u{e9}").unwrap();
    assert_eq!(Some(named.id()), holder.process());
    assert_eq!(named.pid(), std::process::id());
    assert!(!named.host().is_empty() && named.connections() >= 1);
    assert!(named.connected_for() < 10 * LIMIT);
}

async fn a_key_that_cannot_be_is_refused(store: LockerBuilder) {
    let admin = store.prefix("bad:").connect().await.unwrap().admin();
    for name in ["", "a}b"] {
        assert!(admin.holder(name).await.unwrap_err().kind() == LockErrorKind::InvalidKey);
        assert!(admin.queue(name).await.unwrap_err().kind() == LockErrorKind::InvalidKey);
    }
}

async fn a_held_lock_can_be_taken_away(store: LockerBuilder) {
    let locker = store.clone().prefix("taken:").connect().await.unwrap();
    let other = store.prefix("taken:").connect().await.unwrap();
    let (admin, guard) = (locker.admin(), locker.lock("a").renew().acquire().await.unwrap());
    let seen = admin.holder("a").await.unwrap().unwrap();
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Released);
    assert!(admin.holder("a").await.unwrap().is_none());
    let next = other.lock("a").try_acquire().await.unwrap();
    assert!(guard.release().await.unwrap_err().is_lost());
    // The next holder is not meant.
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Changed);
    next.release().await.unwrap();
}

async fn a_kept_lock_can_be_taken_away(store: LockerBuilder) {
    let locker = store.prefix("unkept:").connect().await.unwrap();
    locker.lock("a").min_hold(LONG).run(async {}).await.unwrap();
    let admin = locker.admin();
    let seen = admin.holder("a").await.unwrap().unwrap();
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Released);
    assert!(admin.holder("a").await.unwrap().is_none());
}

/// Its mark is another one since it is waited for.
async fn a_kept_lock_is_taken_away_for_its_waiter(store: LockerBuilder) {
    let locker = store.clone().prefix("passed:").connect().await.unwrap();
    let other = store.prefix("passed:").connect().await.unwrap();
    locker.lock("a").min_hold(LONG).run(async {}).await.unwrap();
    let admin = locker.admin();
    let seen = admin.holder("a").await.unwrap().unwrap();
    let waiting = tokio::spawn(other.lock("a").acquire());
    until(async || queued(&locker, "a").await == 1).await;
    assert_ne!(admin.holder("a").await.unwrap().unwrap().holder().id(), seen.holder().id());
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Released);
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

async fn a_lock_that_is_free_meanwhile_stays_free(store: LockerBuilder) {
    let locker = store.prefix("freed:").connect().await.unwrap();
    let (admin, guard) = (locker.admin(), locker.lock("a").acquire().await.unwrap());
    let seen = admin.holder("a").await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Changed);
    assert!(admin.holder("a").await.unwrap().is_none());
}

async fn a_lock_that_is_kept_meanwhile_is_taken_away(store: LockerBuilder) {
    let locker = store.prefix("kept-since:").connect().await.unwrap();
    let call = locker.lock("a").min_hold(LONG);
    let (admin, guard) = (locker.admin(), call.acquire().await.unwrap());
    let seen = admin.holder("a").await.unwrap().unwrap();
    assert_eq!(seen.holder().kind(), HolderKind::Exclusive);
    guard.release().await.unwrap();
    let kept = admin.holder("a").await.unwrap().unwrap();
    assert_eq!(kept.holder().kind(), HolderKind::KeptByMinHold);
    assert_eq!(admin.force_release(&seen, "why").await.unwrap(), Forced::Released);
    assert!(admin.holder("a").await.unwrap().is_none());
}
