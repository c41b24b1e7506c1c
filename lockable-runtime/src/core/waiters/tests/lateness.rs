use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::core::memory::Slow;
use crate::core::types::reporting::Reporting;

fn slow_waiters() -> (Arc<Slow>, Arc<Lines>) {
    let slow = Slow::open();
    (Arc::clone(&slow), waiters_on(&slow))
}

fn waiters_on(slow: &Arc<Slow>) -> Arc<Lines> {
    let context = link_to(slow);
    Lines::new(Arc::clone(&context), Releaser::new(context), Origin::draw().unwrap())
}

fn link_to(slow: &Arc<Slow>) -> Arc<BackendContext> {
    let backend = Arc::new(Arc::clone(slow));
    Arc::new(BackendContext::new(backend, Duration::from_secs(1), Reporting::default()))
}

async fn elapse(millis: u64) {
    tokio::time::advance(Duration::from_millis(millis)).await;
    settle().await;
}

/// The withdrawal comes first, and the query takes the lock long after.
#[tokio::test(start_paused = true)]
async fn a_query_that_lands_late_takes_no_lock() {
    let (slow, waiters) = slow_waiters();
    slow.query_takes.store(5_000, Relaxed);
    {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        settle().await;
    }
    assert!(has_line(&waiters), "a query has no answer");
    elapse(4_900).await;
    assert!(!is_held(&waiters).await && has_line(&waiters));
    elapse(100).await;
    settle().await;
    assert!(!is_held(&waiters).await && !has_line(&waiters));
    assert_eq!(slow.releases.load(Relaxed), 1, "the query took the lock");
}

#[tokio::test(start_paused = true)]
async fn a_query_without_an_answer_is_forgotten_after_half_a_minute() {
    let (slow, waiters) = slow_waiters();
    slow.query_takes.store(3_600_000, Relaxed);
    {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        elapse(1).await;
    }
    elapse(1_000).await;
    assert!(has_line(&waiters));
    elapse(30_000).await;
    assert!(!has_line(&waiters));
}

/// Its turn begins by the answer to a second query, and ends before the first one lands.
#[tokio::test(start_paused = true)]
async fn a_query_that_lands_after_its_turn_takes_no_lock() {
    let (slow, waiters) = slow_waiters();
    slow.query_takes.store(5_000, Relaxed);
    let first = {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        settle().await;
        slow.query_takes.store(0, Relaxed);
        elapse(1_200).await;
        call.await
    };
    assert_eq!(slow.queries.load(Relaxed), 2);
    first.release().await.unwrap();
    settle().await;
    assert!(!is_held(&waiters).await && has_line(&waiters));
    elapse(5_000).await;
    settle().await;
    assert!(!is_held(&waiters).await && !has_line(&waiters));
}

/// Otherwise `shutdown` would return while an entry is in a queue.
#[tokio::test(start_paused = true)]
async fn a_withdrawal_is_open_work_until_its_answer() {
    let slow = Slow::open();
    let context = link_to(&slow);
    let releaser = Releaser::new(Arc::clone(&context));
    let waiters = Lines::new(context, Arc::clone(&releaser), Origin::draw().unwrap());
    let _first = turn(&waiters_on(&slow)).await;
    {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        settle().await;
        slow.withdrawal_takes.store(500, Relaxed);
    }
    elapse(400).await;
    assert_eq!(releaser.open_work(), 1);
    elapse(100).await;
    assert_eq!(releaser.open_work(), 0);
}

/// A withdrawal without an answer may have left an entry: a grant to it is released by the background.
#[tokio::test(start_paused = true)]
async fn a_failed_withdrawal_is_followed_by_releases() {
    let (slow, waiters) = slow_waiters();
    let other = waiters_on(&slow);
    let _first = turn(&other).await;
    {
        let mut call = pin!(turn(&waiters));
        assert!(is_pending(call.as_mut()));
        settle().await;
        slow.withdrawal_takes.store(3_600_000, Relaxed);
    }
    elapse(900).await;
    assert_eq!(slow.releases.load(Relaxed), 0);
    elapse(200).await;
    assert!(slow.releases.load(Relaxed) > 0);
}

/// A message may have been lost before the subscription.
#[tokio::test(start_paused = true)]
async fn every_line_asks_after_a_new_subscription() {
    use crate::core::backend::Events;
    let (slow, waiters) = slow_waiters();
    let other = waiters_on(&slow);
    let _first = turn(&other).await;
    let mut call = pin!(turn(&waiters));
    assert!(is_pending(call.as_mut()));
    elapse(300).await;
    let queries = slow.queries.load(Relaxed);
    waiters.on_resubscribed(&|_| true);
    settle().await;
    assert_eq!(slow.queries.load(Relaxed), queries + 1);
    assert!(is_pending(call.as_mut()));
}

/// Goal: a server that answers nothing stops no query for other locks until its answers are given up. Method: more
/// locks than may be queried at a time, and not one answer.
#[tokio::test(start_paused = true)]
async fn queries_without_an_answer_in_time_let_others_be_asked() {
    const LOCKS: usize = 300;
    let (slow, waiters) = slow_waiters();
    slow.query_takes.store(3_600_000, Relaxed);
    let keys = (0..LOCKS).map(|n| LockKey::new(n.to_string()).unwrap());
    let lines: Vec<_> = keys.map(LineKey::Lock).collect();
    let options = Options::default();
    let entries: Vec<_> = lines.iter().map(|line| entry_in(&waiters, line.key())).collect();
    let call = |(line, entry)| waiters.turn(line, (entry, &options), LastReply::Busy);
    let _calls: Vec<_> = lines.iter().zip(&entries).map(call).collect();
    settle().await;
    assert!(slow.queries.load(Relaxed) < LOCKS);
    elapse(1_000).await;
    assert_eq!(slow.queries.load(Relaxed), LOCKS);
}
