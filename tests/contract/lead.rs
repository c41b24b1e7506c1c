//! Leaders: one of all that campaign is at work.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockable_runtime::{Leading, LockErrorKind, Locker, OnLost};
use lockable_tests::wait;
use tokio::sync::mpsc::unbounded_channel;

use crate::fixture::{Harm, KEY, LIMIT, Memory, NAME, Redis, Store, drained};

every_full_backend! { one_thread: [
    a_leader_whose_body_returns_resigns,
    one_of_those_that_campaign_leads,
    a_leader_that_is_dropped_resigns,
    a_leader_that_was_stopped_campaigns_again,
    what_no_campaign_can_win_ends_them,
] }

every_claim! { memory_alone: Memory, one_thread, [a_leader_leads_for_longer_than_a_lease] }
every_claim! { redis_alone: Redis, one_thread, [a_campaign_outlives_other_data_at_its_key] }

async fn a_leader_whose_body_returns_resigns(store: &Store) {
    let locker = store.locker().await;
    let (send, mut started) = unbounded_channel();
    let (end, ends) = tokio::sync::oneshot::channel();
    let mut ends = Some(ends);
    let leading = locker.lock(KEY).lead(move |lease| {
        let (send, ends) = (send.clone(), ends.take());
        async move {
            send.send(lease.is_held()).unwrap();
            ends.unwrap().await.unwrap()
        }
    });
    let mut probe = leading.watch();
    assert!(!probe.is_leader());
    let leading = tokio::spawn(leading);
    assert!(started.recv().await.unwrap());
    assert!(probe.changed().await && probe.is_leader());
    end.send(7).unwrap();
    assert!(!probe.changed().await);
    assert_eq!(leading.await.unwrap().unwrap(), 7);
    assert!(!probe.is_leader() && !store.has(NAME));
}

async fn one_of_those_that_campaign_leads(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let terms = Terms::default();
    let (first, second) = (terms.campaign(&locker), terms.campaign(&other));
    let mut probes = [first.watch(), second.watch()];
    let tasks = [tokio::spawn(first), tokio::spawn(second)];
    let [one, two] = &mut probes;
    assert!(tokio::select! { leads = one.changed() => leads, leads = two.changed() => leads });
    store.elapse(store.short()).await;
    assert_eq!(probes.iter().filter(|probe| probe.is_leader()).count(), 1);
    assert_eq!(terms.begun(), 1);
    for task in tasks {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    drained().await;
}

async fn a_leader_leads_for_longer_than_a_lease(store: &Memory) {
    let (locker, terms) = (store.locker().await, Terms::default());
    let leading = terms.campaign(&locker);
    let mut probe = leading.watch();
    let leading = tokio::spawn(leading);
    assert!(probe.changed().await);
    store.elapse(Duration::from_secs(20)).await;
    assert!(probe.is_leader() && terms.begun() == 1);
    leading.abort();
    assert!(leading.await.unwrap_err().is_cancelled());
    drained().await;
}

async fn a_leader_that_is_dropped_resigns(store: &Store) {
    let (locker, other) = (store.locker().await, store.locker().await);
    let terms = Terms::default();
    let (first, second) = (terms.campaign(&locker), terms.campaign(&other));
    let (mut probe, mut next) = (first.watch(), second.watch());
    let first = tokio::spawn(first);
    assert!(probe.changed().await);
    let second = tokio::spawn(second);
    store.elapse(Duration::from_millis(100)).await;
    first.abort();
    assert!(next.changed().await);
    assert!(!probe.is_leader() && !probe.changed().await);
    second.abort();
    assert!(!next.changed().await);
    drained().await;
    assert_eq!(terms.begun(), 2);
}

async fn a_leader_that_was_stopped_campaigns_again(store: &Store) {
    let locker = store.locker().await;
    let (terms, admin) = (Terms::default(), locker.admin());
    let leading = terms.campaign(&locker);
    let mut probe = leading.watch();
    let leading = tokio::spawn(leading);
    assert!(probe.changed().await);
    Harm::Flushed.befall(store);
    assert!(!probe.changed().await);
    assert!(probe.changed().await);
    let held = admin.holder(KEY).await.unwrap().unwrap();
    admin.revoke(&held, "step down", LIMIT).await.unwrap();
    // On a busy machine the next term may have begun already.
    while terms.begun() < 3 || !probe.is_leader() {
        probe.changed().await;
    }
    leading.abort();
    assert!(leading.await.unwrap_err().is_cancelled());
    drained().await;
    assert!(!probe.is_leader());
}

/// What a server refuses may be mended, before the first term and later.
async fn a_campaign_outlives_other_data_at_its_key(store: &Redis) {
    let (locker, admin) = (store.locker().await, store.admin_of(NAME));
    let leading = Terms::default().campaign(&locker);
    let mut probe = leading.watch();
    let replace = "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'other')";
    let replace = || admin.command::<()>(&["EVAL", replace, "1", NAME]);
    replace();
    let mut leading = tokio::spawn(leading);
    for is_first in [true, false] {
        // A campaign begins a second after the last one.
        let tries = admin.command_calls("set");
        wait::until_async(wait::HANG, async || admin.command_calls("set") > tries).await;
        store.delete(NAME);
        tokio::select! {
            is_leader = probe.changed() => assert!(is_leader),
            ended = &mut leading => panic!("the campaigns ended: {ended:?}"),
        }
        if is_first {
            replace();
            assert!(!probe.changed().await);
        }
    }
    leading.abort();
    assert!(leading.await.unwrap_err().is_cancelled());
    drained().await;
}

async fn what_no_campaign_can_win_ends_them(store: &Store) {
    let locker = store.locker().await;
    let body = |_| pending::<()>();
    for (request, kind) in [
        (locker.lock(""), LockErrorKind::InvalidKey),
        (locker.lock(KEY).wait(LIMIT), LockErrorKind::InvalidOption),
        (locker.lock(KEY).once(), LockErrorKind::InvalidOption),
        (locker.lock(KEY).permits(2), LockErrorKind::InvalidOption),
        (locker.lock(KEY).on_lost(OnLost::Finish), LockErrorKind::InvalidOption),
        (locker.lock(KEY).max_hold(Duration::ZERO), LockErrorKind::InvalidOption),
    ] {
        assert_eq!(request.lead(body).await.unwrap_err().kind(), kind);
    }
    let inside = locker.lock(KEY).run(locker.lock(KEY).lead(body)).await.unwrap();
    assert!(inside.unwrap_err().is_held_by_caller());
}

/// How many terms have begun.
#[derive(Default)]
struct Terms(Arc<AtomicU32>);

impl Terms {
    fn campaign(&self, locker: &Locker) -> Leading<()> {
        let begun = Arc::clone(&self.0);
        locker.lock(KEY).expire(Duration::from_secs(6)).lead(move |_| {
            begun.fetch_add(1, Ordering::Relaxed);
            pending()
        })
    }

    fn begun(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
