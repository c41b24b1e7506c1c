//! Permits of a server: under load, after scripts were forgotten, and beside other data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockable_runtime::{LockRequest, Locker};
use lockable_tests::sections::is_clean;
use lockable_tests::{Pace, Server, long_form, wait};
use tokio::task::JoinSet;

use crate::support::{LIMIT, connect_ample, elapse};

const PERMITS: usize = 3;
const QUEUE: &str = "lockable:queue:#:disLock:{k}";

fn permit(locker: &Locker) -> LockRequest {
    locker.lock("k").permits(3).wait(LIMIT)
}

/// Goal: a permit with two holders, a caller that is passed over, and a process that asks more often than it has to.
/// Method: sixteen callers in each of four processes. All take the same time inside, so who comes first leaves first.
#[tokio::test]
async fn processes_share_the_permits_of_a_key_evenly() {
    const CALLERS: usize = 16;
    const PROCESSES: usize = 4;
    let server = Server::start();
    let admin = server.admin();
    let time = Duration::from_millis(u64::try_from(long_form(1_500, 10_000)).unwrap());
    let inside = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    let (pace, mut lockers) = (Arc::new(Pace::start()), Vec::new());
    for _ in 0..PROCESSES {
        lockers.push(connect_ample(&server.url()).await);
    }
    for caller in 0..CALLERS * PROCESSES {
        let locker = lockers[caller % PROCESSES].clone();
        let (inside, pace) = (Arc::clone(&inside), Arc::clone(&pace));
        callers.spawn(async move {
            let mut sections = 0;
            while pace.elapsed() < time {
                let guard = permit(&locker).acquire().await.unwrap();
                let others = inside.fetch_add(1, Ordering::SeqCst);
                assert!(others < PERMITS, "{others} others are inside");
                elapse(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
                sections += 1;
            }
            sections
        });
    }
    let sections = callers.join_all().await;
    let (all, count) = (sections.iter().sum::<usize>(), sections.len());
    let calls = admin.command_calls("evalsha") + admin.command_calls("eval");
    let (least, most) = (sections.iter().min().unwrap(), sections.iter().max().unwrap());
    println!("{all} sections, {least} to {most} each, {calls} calls of scripts");
    // A quarter of the mean, and one that was not begun in time.
    assert!(4 * (most - least) <= 2 * (all / count) + 8, "{sections:?}");
    assert!(10 * calls <= 32 * u64::try_from(all).unwrap(), "{calls} calls for {all} sections");
    is_clean(&server).await;
}

#[tokio::test]
async fn a_crowd_of_one_process_has_as_many_entries_as_permits() {
    let server = Server::start();
    let admin = server.admin();
    let (holder, locker) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let held = [
        permit(&holder).acquire().await,
        permit(&holder).acquire().await,
        permit(&holder).acquire().await,
    ];
    let mut callers = JoinSet::new();
    for _ in 0..1_000 {
        let locker = locker.clone();
        callers.spawn(
            async move { permit(&locker).acquire().await.unwrap().release().await.unwrap() },
        );
    }
    let length = || admin.command::<usize>(&["LLEN", QUEUE]);
    wait::until_async(LIMIT, async || length() == PERMITS).await;
    drop(held);
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
        if callers.len() % 50 == 0 {
            assert!(length() <= PERMITS, "{} entries", length());
        }
    }
    is_clean(&server).await;
}

#[tokio::test]
async fn forgotten_scripts_cost_no_permit() {
    let server = Server::start();
    let admin = server.admin();
    let (one, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    for _ in 0..3 {
        let mut held = Vec::new();
        for locker in [&one, &other, &one] {
            admin.command::<()>(&["SCRIPT", "FLUSH"]);
            let latest = held.last().map_or(0, |guard: &lockable_runtime::LockGuard| {
                u64::from(guard.lease().fencing_token())
            });
            held.push(permit(locker).acquire().await.unwrap());
            assert!(u64::from(held.last().unwrap().lease().fencing_token()) > latest);
        }
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        assert!(other.lock("k").permits(3).try_acquire().await.unwrap().is_none());
        let next = tokio::spawn(permit(&other).acquire());
        wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
        admin.command::<()>(&["SCRIPT", "FLUSH"]);
        held.pop().unwrap().release().await.unwrap();
        next.await.unwrap().unwrap().release().await.unwrap();
        drop(held);
        lockable_runtime::shutdown(LIMIT).await.unwrap();
    }
    is_clean(&server).await;
}

#[tokio::test]
async fn other_data_in_the_place_of_a_permit_stay() {
    let server = Server::start();
    let admin = server.admin();
    admin.command::<u64>(&["RPUSH", "disLock:{k}#1", "theirs"]);
    admin.set("disLock:{k}#2", "theirs");
    let (locker, other) = (connect_ample(&server.url()).await, connect_ample(&server.url()).await);
    let guard = permit(&locker).acquire().await.unwrap();
    assert_eq!(guard.lease().key().as_str(), "disLock:{k}#3");
    let next = tokio::spawn(permit(&other).acquire());
    wait::until_async(LIMIT, async || admin.command::<usize>(&["LLEN", QUEUE]) == 1).await;
    guard.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert_eq!(next.lease().key().as_str(), "disLock:{k}#3");
    next.release().await.unwrap();
    assert_eq!(admin.get("disLock:{k}#2").as_deref(), Some("theirs"));
    assert_eq!(admin.type_of("disLock:{k}#1"), "list");
}
