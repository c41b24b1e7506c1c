//! What a lock logs: its spans, its events, and its warnings.

use std::future::pending;
use std::time::Duration;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{LockError, LockGuard, Locker, LockerBuilder, distributed_lock};
use tokio::task::JoinHandle;
use tracing::Level;

use crate::events::{self, Logged, Span};
use crate::support::{SECOND, elapse, hold, locker, pause, poll_once};

/// The fields of the one span of this name.
#[track_caller]
fn the_span(spans: &[Span], name: &str) -> Span {
    let all: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(all.len(), 1, "{name} in {spans:#?}");
    all[0].clone()
}

/// The events of this level and name.
fn logged_as(logged: &[Logged], level: Level, name: &str) -> Vec<String> {
    let is_it = |logged: &&Logged| logged.level == level && logged.name == name;
    logged.iter().filter(is_it).map(|logged| logged.fields.clone()).collect()
}

#[track_caller]
fn assert_has(fields: &str, wanted: &[&str]) {
    for field in wanted {
        assert!(fields.contains(field), "{field} in {fields}");
    }
}

async fn connect(builder: LockerBuilder) -> Locker {
    builder.url("memory://").connect().await.unwrap()
}

#[distributed_lock(key = "k", locker = locks, expire = 4)]
async fn logs_inside(locks: &Locker) -> Option<u8> {
    elapse(SECOND).await;
    tracing::info!(target: "lockable", "the body");
    pause().await;
    Some(7)
}

#[tokio::test(start_paused = true)]
async fn a_call_logs_its_lock_from_request_to_release() {
    let locks = locker().await;
    events::listen();
    assert_eq!(logs_inside(&locks).await, Some(7));
    let (logged, spans) = (events::take_all(), events::spans());
    assert!(spans.iter().all(|span| span.level == Level::DEBUG && span.parent.is_none()));
    let acquire = the_span(&spans, "acquire").fields;
    let granted = [r#"key="disLock:k""#, r#"outcome="granted""#, "waited=0.0", "fencing_token="];
    assert_has(&acquire, &granted);
    assert_has(&logged_as(&logged, Level::DEBUG, "acquire")[0], &granted);
    let ended = [r#"key="disLock:k""#, r#"outcome="released""#, "held=1.0", "fencing_token="];
    assert_has(&the_span(&spans, "hold").fields, &ended);
    assert_has(&logged_as(&logged, Level::DEBUG, "hold")[0], &ended);
    let release = the_span(&spans, "release").fields;
    let released = [r#"key="disLock:k""#, r#"outcome="released""#];
    assert_has(&release, &released);
    assert_has(&logged_as(&logged, Level::DEBUG, "release")[0], &released);
    assert_eq!(logged.len(), 4, "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_body_logs_is_inside_of_its_hold() {
    let locks = locker().await;
    events::listen();
    assert_eq!(logs_inside(&locks).await, Some(7));
    let logged = events::take();
    assert!(matches!(&*logged, [body] if body.spans == ["hold"]), "{logged:#?}");
    let _guard = hold(&locks, "k").await;
    tracing::info!(target: "lockable", "under a guard");
    assert!(events::take()[0].spans.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_functions_span_is_inside_or_around_its_hold() {
    #[tracing::instrument(target = "lockable", skip(locks))]
    #[distributed_lock(key = "k", locker = locks)]
    async fn above(locks: &Locker) -> Option<()> {
        pause().await;
        tracing::info!(target: "lockable", "the body");
        Some(())
    }
    #[distributed_lock(key = "k", locker = locks)]
    #[tracing::instrument(target = "lockable", skip(locks))]
    async fn below(locks: &Locker) -> Option<()> {
        pause().await;
        tracing::info!(target: "lockable", "the body");
        Some(())
    }
    let locks = locker().await;
    events::listen();
    above(&locks).await.unwrap();
    assert_eq!(events::take()[0].spans, ["hold", "above"]);
    assert_eq!(the_span(&events::spans(), "acquire").parent, None);
    below(&locks).await.unwrap();
    assert_eq!(events::take()[0].spans, ["below", "hold"]);
    assert_eq!(the_span(&events::spans(), "acquire").parent, Some("below"));
}

#[test]
fn a_sync_body_logs_inside_its_hold() {
    #[distributed_lock(key = "k", locker = locks)]
    fn body(locks: &Locker) -> Option<u8> {
        tracing::info!(target: "lockable", "the body");
        Some(7)
    }
    let locks = crate::support::locker_now();
    events::listen();
    assert_eq!(body(&locks), Some(7));
    let logged = events::take();
    assert!(matches!(&*logged, [body] if body.spans == ["hold"]), "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_logs_how_long() {
    let locks = locker().await;
    let held = hold(&locks, "k").await;
    events::listen();
    let (waited, released) = tokio::join!(locks.lock("k").wait(9 * SECOND).acquire(), async {
        elapse(3 * SECOND).await;
        held.release().await
    });
    released.unwrap();
    let spans = events::spans();
    let wait = the_span(&spans, "wait");
    assert_eq!((wait.level, wait.parent), (Level::DEBUG, Some("acquire")));
    assert_has(&wait.fields, &[r#"key="disLock:k""#, "waited=3.0"]);
    assert_has(&the_span(&spans, "acquire").fields, &["waited=3.0", r#"outcome="granted""#]);
    assert_eq!(waited.unwrap().lease().key().as_str(), "disLock:k");
}

#[tokio::test(start_paused = true)]
async fn a_call_logs_why_it_has_no_lock() {
    let locks = locker().await;
    let _held = hold(&locks, "k").await;
    events::listen();
    assert!(locks.lock("k").try_acquire().await.unwrap_err().is_busy());
    locks.lock("k").wait(SECOND).acquire().await.unwrap_err();
    let mut call = Box::pin(locks.lock("k").acquire());
    assert!(poll_once(call.as_mut()).await.is_none());
    drop(call);
    let (logged, spans) = (events::take_all(), events::spans());
    let acquire = spans.iter().filter(|span| span.name == "acquire").map(|span| &*span.fields);
    let outcomes = [r#"outcome="busy""#, r#"outcome="wait_limit""#, r#"outcome="cancelled""#];
    for (fields, outcome) in acquire.zip(outcomes) {
        assert_has(fields, &[r#"key="disLock:k""#, outcome]);
    }
    let debug = logged_as(&logged, Level::DEBUG, "acquire");
    assert_eq!(debug.len(), 2, "{logged:#?}");
    assert_has(&debug[0], &outcomes[..1]);
    assert_has(&logged_as(&logged, Level::WARN, "acquire")[0], &["waited=1.0", "wait limit"]);
}

#[tokio::test(start_paused = true)]
async fn renewals_and_losses_are_logged_with_the_fencing_token() {
    let locks = locker().await;
    events::listen();
    let request = locks.lock("k").expire(SECOND).renew();
    request.run(elapse(SECOND / 2)).await.unwrap();
    let (logged, spans) = (events::take_all(), events::spans());
    let renew = the_span(&spans, "renew");
    assert_eq!((renew.level, &*renew.fields), (Level::DEBUG, "leases=1 "));
    let renewed = logged_as(&logged, Level::TRACE, "renew");
    let fields = [r#"key="disLock:k""#, "fencing_token=", r#"outcome="renewed""#];
    assert_has(&renewed[0], &fields);

    let request = locks.lock("k").expire(SECOND);
    request.run(pending::<()>()).await.unwrap_err();
    let (logged, spans) = (events::take_all(), events::spans());
    let lost = logged_as(&logged, Level::WARN, "lost");
    assert_eq!(lost.len(), 1, "{logged:#?}");
    assert_has(&lost[0], &[r#"key="disLock:k""#, "fencing_token=", r#"reason="deadline""#]);
    assert_has(&the_span(&spans, "hold").fields, &[r#"outcome="lost""#]);
}

#[tokio::test(start_paused = true)]
async fn a_body_near_its_leases_end_warns_once() {
    let locks = locker().await;
    let run = |locks: &Locker, millis| {
        let request = locks.lock("k").expire(SECOND);
        request.run(elapse(Duration::from_millis(millis)))
    };
    events::listen();
    run(&locks, 780).await.unwrap();
    assert!(events::take().is_empty());
    run(&locks, 800).await.unwrap();
    let logged = events::take();
    assert_eq!(logged.len(), 1, "{logged:#?}");
    let warned = logged_as(&logged, Level::WARN, "hold");
    assert_has(&warned[0], &[r#"key="disLock:k""#, "held=0.8", "share=0.8", "`renew`"]);
    // The lease is longer by what it was extended.
    let guard = locks.lock("k").expire(SECOND).acquire().await.unwrap();
    elapse(SECOND / 2).await;
    guard.lease().extend(2 * SECOND).await.unwrap();
    elapse(SECOND).await;
    guard.release().await.unwrap();
    locks.lock("k").expire(SECOND).renew().run(elapse(9 * SECOND / 10)).await.unwrap();
    assert!(events::take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_renewed_hold_is_logged_each_time_its_age_doubles() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let hold_renewed = async |locks: &Locker, held| {
        locks.lock("k").expire(HOUR).renew().run(elapse(held)).await.unwrap();
        let logged = events::take();
        let warned = logged_as(&logged, Level::WARN, "hold");
        assert_eq!(warned.len(), logged.len(), "{logged:#?}");
        warned
    };
    let locks = locker().await;
    events::listen();
    assert_eq!(hold_renewed(&locks, 23 * HOUR).await, [""; 0]);
    let warned = hold_renewed(&locks, 7 * 24 * HOUR).await;
    assert_eq!(warned.len(), 3, "{warned:#?}");
    for (fields, days) in warned.iter().zip([1.0, 2.0, 4.0]) {
        assert_has(fields, &[r#"key="disLock:k""#, "fencing_token=", "`max_hold`"]);
        let held = fields.split("held=").nth(1).unwrap().split(' ').next().unwrap();
        let late = held.parse::<f64>().unwrap() - days * 24.0 * HOUR.as_secs_f64();
        assert!((0.0..HOUR.as_secs_f64()).contains(&late), "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_long_warns_while_it_waits() {
    let locks = connect(Locker::builder().warn_waited_over(2 * SECOND)).await;
    let held = hold(&locks, "k").await;
    events::listen();
    let (waited, ()) = tokio::join!(locks.lock("k").acquire(), async {
        elapse(SECOND).await;
        assert!(events::take().is_empty());
        elapse(6 * SECOND).await;
        let logged = events::take();
        let warned = logged_as(&logged, Level::WARN, "wait");
        assert_eq!((logged.len(), warned.len()), (2, 2), "{logged:#?}");
        for (warned, waited) in warned.iter().zip(["waited=2.0", "waited=4.0"]) {
            assert_has(warned, &[r#"key="disLock:k""#, waited, "may wait for itself"]);
        }
        assert_eq!(logged[0].spans, ["acquire"]);
        held.release().await.unwrap();
    });
    drop(waited.unwrap());
    assert!(events::take().is_empty());
}

/// Goal: a deadlock of a body and a task of its own that no one hears of.
/// Method: the lock is busy for a day.
#[tokio::test(start_paused = true)]
async fn a_wait_without_a_limit_warns_by_default() {
    let locks = locker().await;
    let _held = hold_for_a_day(&locks).await;
    events::listen();
    tokio::time::timeout(6 * 3_600 * SECOND, locks.lock("k").acquire()).await.unwrap_err();
    let logged = events::take();
    let waited = |text: &String| text.split("waited=").nth(1)?.split('.').next()?.parse().ok();
    let warned: Vec<u32> =
        logged_as(&logged, Level::WARN, "wait").iter().filter_map(waited).collect();
    let hours = (0..5).map(|hour| 3_840 + 3_600 * hour);
    let expected: Vec<u32> = (0..8).map(|doubled| 30 << doubled).chain(hours.skip(1)).collect();
    assert_eq!(warned, expected, "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_for_one_lock_logs_one_line() {
    let locks = locker().await;
    let _held = hold_for_a_day(&locks).await;
    events::listen();
    let crowd = (0..100).map(|_| tokio::spawn(locks.lock("k").acquire()));
    let crowd: Vec<_> = crowd.collect();
    elapse(31 * SECOND).await;
    assert_eq!(logged_as(&events::take(), Level::WARN, "wait").len(), 1);
    crowd.iter().for_each(JoinHandle::abort);
}

/// Goal: a call that no longer waits, and warns of its wait.
#[tokio::test(start_paused = true)]
async fn each_way_out_of_an_endless_wait_is_recorded() {
    for outcome in ["granted", "cancelled", "failed"] {
        let locks = locker().await;
        let held = hold_for_a_day(&locks).await;
        events::listen();
        let waiting = tokio::spawn(locks.lock("k").acquire());
        elapse(40 * SECOND).await;
        match outcome {
            "granted" => held.release().await.unwrap(),
            "cancelled" => waiting.abort(),
            _ => locks.drain(),
        }
        let _ended = waiting.await;
        elapse(3_600 * SECOND).await;
        let warned = logged_as(&events::take(), Level::WARN, "wait");
        assert_eq!(warned.len(), 1, "{outcome}: {warned:#?}");
        let recorded = format!("outcome=\"{outcome}\"");
        assert_has(&the_span(&events::spans(), "acquire").fields, &[&recorded]);
    }
}

async fn hold_for_a_day(locks: &Locker) -> LockGuard {
    locks.lock("k").expire(86_400 * SECOND).acquire().await.unwrap()
}

/// Each has what it logs when the call begins to wait, and half a minute later.
#[tokio::test(start_paused = true)]
async fn a_waiting_call_logs_what_it_waits_for() {
    use Obstacle::{Done, MinHold, Paused, Running, Ticket};
    let kinds = [
        (
            Running,
            "",
            "WARN: message=the call is still waiting; another holder has the lock, for another",
        ),
        (
            MinHold,
            "",
            "WARN: message=the call is still waiting; the lock was released, and its `min_hold`",
        ),
        (
            Done,
            "WARN: message=a call without `once` finds the lock taken: a call with `once` ended well",
            "",
        ),
        (Paused, "INFO: message=the call waits; the lock is paused until", ""),
        (Ticket, "INFO: message=the call waits; a ticket has the lock", ""),
    ];
    for (kind, at_once, later) in kinds {
        let (holder, locks) = (shared("obstacles").await, shared("obstacles").await);
        kind.begin(&holder).await;
        events::listen();
        let waiting = tokio::time::timeout(40 * SECOND, locks.lock("k").acquire());
        let (ended, ()) = tokio::join!(waiting, async {
            elapse(29 * SECOND).await;
            is_logged(&events::take(), at_once);
        });
        ended.unwrap_err();
        is_logged(&events::take(), later);
    }
}

/// What a call without `once` waits for.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
    Running,
    MinHold,
    Done,
    Paused,
    Ticket,
}

impl Obstacle {
    async fn begin(self, locks: &Locker) {
        let hour = 3_600 * SECOND;
        let request = locks.lock("k").expire(hour);
        match self {
            Self::Running => std::mem::forget(request.acquire().await.unwrap()),
            Self::MinHold => request.min_hold(hour).run(async {}).await.unwrap(),
            Self::Done => request.once().acquire().await.unwrap().keep(hour).await.unwrap(),
            Self::Paused => request.acquire().await.unwrap().into_pause(hour, "").await.unwrap(),
            Self::Ticket => drop(request.acquire().await.unwrap().into_ticket(hour).await.unwrap()),
        }
    }
}

/// That is the only event, or there is none.
#[track_caller]
fn is_logged(logged: &[Logged], text: &str) {
    let shown = |event: &Logged| format!("{}: {}", event.level, event.fields);
    let all: Vec<_> = logged.iter().map(shown).collect();
    let (level, words) = text.split_once(": ").unwrap_or_default();
    let fits = all.iter().all(|event| event.starts_with(level) && event.contains(words));
    assert!(fits && all.len() == usize::from(!text.is_empty()), "{text}: {all:#?}");
}

/// A locker on a store of its own, and others of the same name on the same.
async fn shared(name: &str) -> Locker {
    Locker::connect(&format!("memory://{name}")).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_meant_to_be_long_warns_of_nothing() {
    let locks = locker().await;
    let _held = hold_for_a_day(&locks).await;
    let silent = connect(Locker::builder().warn_waited_over(Duration::MAX)).await;
    let _other = hold_for_a_day(&silent).await;
    events::listen();
    let hour = 3_600 * SECOND;
    tokio::time::timeout(hour, silent.lock("k").acquire()).await.unwrap_err();
    tokio::time::timeout(hour, locks.lock("k").lead(|_| pending::<()>())).await.unwrap_err();
    // The campaigns were dropped.
    events::assert_only(Level::INFO, &["resigned"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_long_for_a_permit_warns_too() {
    let locks = connect(Locker::builder().warn_waited_over(2 * SECOND)).await;
    let permit = || locks.lock("k").permits(2).acquire();
    let held = [permit().await.unwrap(), permit().await.unwrap()];
    events::listen();
    let (waited, ()) = tokio::join!(permit(), async {
        elapse(5 * SECOND).await;
        let logged = events::take();
        assert_eq!(logged_as(&logged, Level::WARN, "wait").len(), 2, "{logged:#?}");
        drop(held);
    });
    drop(waited.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_after_its_lease_logs_one_loss() {
    let locks = locker().await;
    events::listen();
    let guard = locks.lock("k").expire(SECOND).acquire().await.unwrap();
    elapse(2 * SECOND).await;
    drop(guard);
    elapse(SECOND).await;
    let logged = events::take();
    assert_eq!(logged.len(), 1, "{logged:#?}");
    assert_eq!(logged_as(&logged, Level::WARN, "lost").len(), 1, "{logged:#?}");
}

#[tokio::test(start_paused = true)]
async fn campaigns_that_fail_in_an_outage_warn_once() {
    let locks = TestLocks::new();
    (0..3).for_each(|_| locks.fail_next("k"));
    events::listen();
    tokio::select! {
        () = elapse(5 * SECOND) => {}
        ended = locks.locker().lock("k").lead(|_| pending::<()>()) => ended.unwrap(),
    }
    let logged = events::take();
    let warned = logged_as(&logged, Level::WARN, "lead");
    let counts = locks.counts("k");
    assert_eq!((warned.len(), counts.failed, counts.granted), (1, 3, 1), "{logged:#?}");
    assert_has(&warned[0], &[r#"key="disLock:k""#]);
}

/// Goal: nothing of a redacted key is seen. Method: every way to log it that needs no server.
#[tokio::test(start_paused = true)]
async fn a_redacted_key_is_shown_nowhere() {
    #[distributed_lock(key = "mail:{id}", locker = locks)]
    async fn unit(locks: &Locker, id: &str) {
        unreachable!("runs beside another holder, for {id}")
    }
    let locks = connect(Locker::builder().redact_keys()).await;
    events::listen();
    let held = hold(&locks, "mail:secret").await;
    let mut errors = failures(&locks).await;
    unit(&locks, "secret").await;
    unit(&locks, "").await;
    elapse(20 * SECOND).await;
    errors.push(held.lease().extend(SECOND).await.unwrap_err());
    errors.push(held.lease().lost().await);
    errors.push(held.release().await.unwrap_err());
    for error in errors {
        let text = format!("{error} {error:?}");
        assert!(text.contains("redacted:") && !text.contains("secret"), "{text}");
        assert!(error.key().is_some_and(|key| key.contains("secret")));
    }
    let logged = events::take_all().into_iter().map(|logged| logged.fields);
    let spans = events::spans().into_iter().map(|span| span.fields);
    for fields in logged.chain(spans) {
        assert!(fields.contains("redacted:") && !fields.contains("secret"), "{fields}");
    }
}

/// What goes wrong while another holder has the lock.
async fn failures(locks: &Locker) -> Vec<LockError> {
    let request = || locks.lock("mail:secret");
    vec![
        request().wait(SECOND).acquire().await.unwrap_err(),
        request().min_hold(99 * SECOND).acquire().await.unwrap_err(),
        locks.lock("secret}").acquire().await.unwrap_err(),
        locks.inspect("secret}").await.unwrap_err(),
        locks
            .lock("secret:8")
            .run(async { locks.lock("secret:8").acquire().await })
            .await
            .unwrap()
            .unwrap_err(),
    ]
}
