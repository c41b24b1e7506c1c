//! The turns of calls, on a store in memory and in paused time.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::*;
use crate::core::backend::BackendContext;
use crate::core::process::clock::{timer_on, tokio_time, within};
use crate::core::releaser::Releaser;
use crate::core::types::owner::Origin;

mod lateness;

static KEY: LockKey = LockKey::from_static("k");
static LINE: LineKey = LineKey::Lock(LockKey::from_static("k"));

fn entry(waiters: &Arc<Lines>) -> Entry {
    entry_in(waiters, &KEY)
}

fn entry_in(waiters: &Arc<Lines>, key: &LockKey) -> Entry {
    match waiters.enter(key, Wait::Forever, waiters.context.backend.now()) {
        (Admission::Tries, mut entry) => {
            entry.waits();
            entry
        }
        (Admission::Joins { .. }, entry) => entry,
        (Admission::IsBusy, _) => unreachable!("a call that waits"),
    }
}

fn waiters() -> Arc<Lines> {
    let context = Arc::new(BackendContext::in_memory());
    Lines::new(Arc::clone(&context), Releaser::new(context), Origin::draw().unwrap())
}

/// The next call waits for its turn, but not for ever. Calls are fair, so that no turn is passed on, unless they say
/// so.
async fn turn(waiters: &Arc<Lines>) -> Turn {
    turn_of(waiters, true).await
}

async fn turn_of(waiters: &Arc<Lines>, fair: bool) -> Turn {
    let (options, entry) = (Options { fair, ..Options::default() }, entry(waiters));
    let limit = || waiters.context.backend.timer(Duration::from_secs(60));
    let call = waiters.turn(&LINE, (&entry, &options), LastReply::Busy);
    within(limit, call).await.expect("no turn comes").unwrap()
}

fn is_pending<T>(call: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
    matches!(call.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

async fn is_held(waiters: &Arc<Lines>) -> bool {
    waiters.context.backend.inspect(KEY.clone()).await.unwrap().is_some()
}

fn has_line(waiters: &Arc<Lines>) -> bool {
    waiters.look(&LINE, |_| ()).is_some()
}

fn token(turn: &Turn) -> u64 {
    turn.granted.grant.fencing_token().into()
}

async fn settle() {
    timer_on(&tokio::runtime::Handle::current(), Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_released_turn_leaves_nothing() {
    let waiters = waiters();
    let turn = turn(&waiters).await;
    assert!(is_held(&waiters).await && has_line(&waiters));
    assert_eq!(turn.release().await.unwrap(), crate::core::backend::Release::Released);
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}

#[tokio::test(start_paused = true)]
async fn a_release_serves_the_next_call_at_once() {
    const RESERVED: u64 = 17;
    let waiters = waiters();
    let first = turn(&waiters).await;
    let mut next = pin!(turn(&waiters));
    assert!(is_pending(next.as_mut()));
    let (start, token_of_first) = (tokio_time(), token(&first));
    first.release().await.unwrap();
    let second = next.await;
    assert_eq!(tokio_time(), start);
    settle().await;
    assert_eq!(token(&second) - token_of_first, RESERVED);
    second.release().await.unwrap();
    let third = turn(&waiters).await;
    assert_eq!(token(&third) - token_of_first, 2 * RESERVED, "a query was asked in vain");
}

/// So at its limit such a call is busy, although it has sent no request itself.
#[tokio::test(start_paused = true)]
async fn calls_behind_a_try_hear_that_the_lock_is_busy() {
    let waiters = waiters();
    let (Admission::Tries, mut trying) = waiters.enter(&KEY, Wait::Forever, tokio_time()) else {
        unreachable!("no other call is there")
    };
    let (options, entry) = (Options::default(), entry(&waiters));
    let _call = waiters.turn(&LINE, (&entry, &options), LastReply::Nothing);
    assert!(matches!(waiters.last_reply(&LINE), LastReply::Nothing));
    trying.waits();
    assert!(matches!(waiters.last_reply(&LINE), LastReply::Busy));
}

#[tokio::test(start_paused = true)]
async fn a_call_hears_of_the_first_grant_at_once() {
    let waiters = waiters();
    let context = &waiters.context;
    let other = Lines::new(
        Arc::clone(context),
        Releaser::new(Arc::clone(context)),
        Origin::draw().unwrap(),
    );
    let first = turn(&other).await;
    let mut next = pin!(turn(&waiters));
    assert!(is_pending(next.as_mut()));
    settle().await;
    let start = tokio_time();
    first.release().await.unwrap();
    drop(next.await);
    assert_eq!(tokio_time(), start);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_turn_is_released_or_passed_to_the_next_call() {
    let waiters = waiters();
    let first = turn_of(&waiters, false).await;
    let mut next = pin!(turn_of(&waiters, false));
    assert!(is_pending(next.as_mut()));
    let token_of_first = token(&first);
    drop(first);
    let second = next.await;
    assert_eq!(token(&second), token_of_first + 1);
    drop(second);
    settle().await;
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}

#[tokio::test(start_paused = true)]
async fn a_passed_turn_is_over_for_its_first_call() {
    let waiters = waiters();
    let mut first = turn_of(&waiters, false).await;
    let mut next = pin!(turn_of(&waiters, false));
    assert!(!first.pass(), "no call waits");
    assert!(is_pending(next.as_mut()) && first.pass());
    drop(first);
    let second = next.await;
    settle().await;
    assert!(is_held(&waiters).await && has_line(&waiters));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_release_is_deferred_is_not_released_by_the_line() {
    let waiters = waiters();
    turn(&waiters).await.defer();
    settle().await;
    assert!(is_held(&waiters).await && !has_line(&waiters));
}

#[tokio::test(start_paused = true)]
async fn a_lost_turn_is_withdrawn() {
    let waiters = waiters();
    turn(&waiters).await.lose();
    settle().await;
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_leaves_its_line() {
    let waiters = waiters();
    let first = turn(&waiters).await;
    {
        let mut next = pin!(turn(&waiters));
        assert!(is_pending(next.as_mut()));
        assert_eq!(waiters.waiting(&KEY), 1);
    }
    assert_eq!(waiters.waiting(&KEY), 0);
    first.release().await.unwrap();
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_dropped_with_its_turn_releases_it() {
    let waiters = waiters();
    {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        settle().await;
        assert!(is_held(&waiters).await);
    }
    settle().await;
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}
