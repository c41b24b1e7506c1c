//! What a process logs of its campaigns: each end, and nothing else that is none.

use std::future::{Future, Pending, pending, ready};
use std::panic::resume_unwind;

use lockable_runtime::testing::TestLocks;
use lockable_runtime::{Leading, Lease, LockRequest};
use tokio::task::JoinSet;
use tracing::Level;

use crate::events::{self, Logged};
use crate::support::{BoxFuture, LEASE, SECOND, elapse, skip_a_lease};

type Way = fn(TestLocks) -> BoxFuture<'static, ()>;

fn lead<F: Future<Output: Send> + Send + 'static>(
    locks: &TestLocks,
    body: impl FnMut(Lease) -> F + Send + 'static,
) -> Leading<F::Output> {
    request(locks).lead(body)
}

/// Awaits campaigns that end by themselves.
macro_rules! ends {
    ($locks:ident => $leading:expr) => {
        |$locks| {
            Box::pin(async move {
                drop(tokio::spawn($leading).await);
            })
        }
    };
}

/// Aborts campaigns that do not end by themselves.
macro_rules! goes_on {
    ($locks:ident => $leading:expr $(, $meanwhile:expr)?) => {
        |$locks| {
            Box::pin(async move {
                let leading = tokio::spawn($leading);
                elapse(SECOND / 10).await;
                $($meanwhile;)?
                elapse(5 * SECOND).await;
                assert!(ended().is_empty() && !leading.is_finished());
                leading.abort();
                drop(leading.await);
            })
        }
    };
}

/// Each of these resigns in the end: that says no word of a failure.
#[tokio::test(start_paused = true)]
async fn a_resignation_is_one_event_that_says_how() {
    let ways: [(&str, Way, &str); 13] = [
        ("a value", ends!(locks => lead(&locks, |_| ready(7))), "returned"),
        ("an error value", ends!(locks => lead(&locks, |_| ready(Err::<(), _>(7)))), "returned"),
        ("its caller is dropped", dropped_by_its_caller, "dropped"),
        ("its tasks are dropped", dropped_with_others, "dropped"),
        ("aborted", goes_on!(locks => lead(&locks, stays)), "dropped"),
        ("aborted candidate", aborted_while_another_leads, "dropped"),
        ("lost", goes_on!(locks => lead(&locks, stays), locks.lose("k")), "dropped"),
        ("revoked", goes_on!(locks => lead(&locks, stays), locks.revoke("k", "why")), "dropped"),
        ("max_hold", goes_on!(locks => request(&locks).max_hold(SECOND).lead(stays)), "dropped"),
        ("an outage", goes_on!(locks => after_an_outage(&locks)), "dropped"),
        ("drained before", goes_on!(locks => after_a_drain(&locks)), "dropped"),
        ("drained", goes_on!(locks => lead(&locks, stays), locks.locker().drain()), "dropped"),
        ("drained candidate", drained_while_another_leads, "dropped"),
    ];
    for (way, end, outcome) in ways {
        assert_ends(way, end, Level::INFO, outcome, "").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_no_one_wanted_is_one_error() {
    let ways: [(&str, Way, &str, &str); 7] = [
        ("panic", ends!(locks => lead(&locks, |_| async { panics() })), "panicked", ""),
        ("panic at once", ends!(locks => lead(&locks, |_| ready(panics()))), "panicked", ""),
        ("late", ends!(locks => lead(&locks, |_| async { skip_a_lease() })), "failed", "was lost"),
        (
            "key",
            ends!(locks => locks.locker().lock("").label("jobs").lead(stays)),
            "failed",
            "empty",
        ),
        (
            "wait",
            ends!(locks => request(&locks).wait(SECOND).lead(stays)),
            "failed",
            "leave `wait`",
        ),
        (
            "min_hold",
            ends!(locks => request(&locks).min_hold(2 * LEASE).lead(stays)),
            "failed",
            "at most",
        ),
        ("own body", inside_of_its_own_body, "failed", "holds the lock itself"),
    ];
    for (way, end, outcome, error) in ways {
        assert_ends(way, end, Level::ERROR, outcome, error).await;
    }
}

async fn assert_ends(way: &str, end: Way, level: Level, outcome: &str, error: &str) {
    events::listen();
    end(TestLocks::new()).await;
    let logged = ended();
    let [event] = &*logged else { panic!("{way}: {logged:#?}") };
    assert_eq!(event.level, level, "{way}: {event:?}");
    for field in [r#"lock="jobs""#, &format!("outcome={outcome:?}"), error] {
        assert!(event.fields.contains(field), "{way}: {field} in {event:?}");
    }
    assert!(way == "key" || event.fields.contains(r#"key="disLock:k""#), "{way}: {event:?}");
}

fn request(locks: &TestLocks) -> LockRequest {
    locks.locker().lock("k").label("jobs")
}

fn stays(_: Lease) -> Pending<()> {
    pending()
}

fn panics() -> u8 {
    resume_unwind(Box::new(()))
}

fn dropped_by_its_caller(locks: TestLocks) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        tokio::time::timeout(SECOND, lead(&locks, stays)).await.unwrap_err();
    })
}

fn dropped_with_others(locks: TestLocks) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let mut tasks = JoinSet::new();
        tasks.spawn(lead(&locks, stays));
        elapse(SECOND).await;
        drop(tasks);
        elapse(SECOND).await;
    })
}

fn aborted_while_another_leads(locks: TestLocks) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let other = locks.hold("k");
        let leading = tokio::spawn(lead(&locks, stays));
        elapse(SECOND).await;
        leading.abort();
        leading.await.unwrap_err();
        drop(other);
    })
}

fn drained_while_another_leads(locks: TestLocks) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let other = locks.hold("k");
        let leading = tokio::spawn(lead(&locks, stays));
        elapse(SECOND).await;
        locks.locker().drain();
        elapse(5 * SECOND).await;
        leading.abort();
        leading.await.unwrap_err();
        drop(other);
    })
}

fn inside_of_its_own_body(locks: TestLocks) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        request(&locks).run(lead(&locks, stays)).await.unwrap().unwrap_err();
    })
}

fn after_an_outage(locks: &TestLocks) -> Leading<()> {
    locks.fail_next("k");
    lead(locks, stays)
}

fn after_a_drain(locks: &TestLocks) -> Leading<()> {
    locks.locker().drain();
    lead(locks, stays)
}

/// The events that say that the campaigns of a process are over.
fn ended() -> Vec<Logged> {
    let is_end = |logged: &Logged| logged.name == "lead" && logged.level != Level::WARN;
    events::take().into_iter().filter(is_end).collect()
}

#[tokio::test(start_paused = true)]
async fn campaigns_that_were_never_polled_do_not_end() {
    events::listen();
    drop(lead(&TestLocks::new(), stays));
    assert!(ended().is_empty());
}
