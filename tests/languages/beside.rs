//! redis-py's lock beside all kinds of calls, on the same keys.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockable_runtime::{Lease, LockError, Locker};
use lockable_tests::sections::is_clean;
use lockable_tests::{Admin, long_form};
use tokio::task::JoinSet;

use crate::{LEASE, Setting, connect, pause};

/// Goal: of no name that a lock has there are two holders, whatever kinds of calls and clients take it.
/// Method: `a` and `b` are taken together, alone, and by redis-py; permits of `k` one by one, all together, and one by
/// redis-py. A holder counts itself in and out, in the server. Half of the calls wait; as a release by redis-py wakes no
/// one, the others try again and again.
#[tokio::test]
async fn calls_of_all_kinds_and_other_clients_never_overlap() {
    let Setting { _server: server, admin, locker, mut python } = Setting::new().await;
    let millis = long_form(1_200, 10_000);
    let seconds = Duration::from_millis(u64::try_from(millis).unwrap());
    python.say(&format!("share {} {}", seconds.as_secs_f64(), THEIRS.join(" ")));
    let lockers = [locker, connect(&server).await];
    let (admin, mut callers) = (Arc::new(admin), JoinSet::new());
    for number in 0..2 * KINDS.len() {
        let (locker, kind) = (lockers[number % 2].clone(), KINDS[number / 2]);
        callers.spawn(call(locker, kind, Arc::clone(&admin), seconds));
    }
    let ours = callers.join_all().await;
    let theirs = python.hear();
    println!("{ours:?} sections beside {theirs}");
    let are_sections = |word: &str| word.parse::<usize>().is_ok_and(|count| count > 0);
    assert!(theirs.split(' ').all(are_sections), "{theirs}");
    for counter in admin.keys("inside:*") {
        assert_eq!(admin.get(&counter).as_deref(), Some("0"), "{counter}");
        admin.del(&counter);
    }
    python.finish();
    is_clean(&server).await;
}

const THEIRS: [&str; 3] = ["disLock:a", "disLock:b", "disLock:{k}#2"];

#[derive(Clone, Copy, Debug)]
enum Kind {
    A,
    B,
    Both,
    Permit,
    AllPermits,
}

/// Each is called by two processes.
const KINDS: [Kind; 6] =
    [Kind::A, Kind::B, Kind::Both, Kind::Permit, Kind::Permit, Kind::AllPermits];

/// How many sections there were: at least one.
async fn call(locker: Locker, kind: Kind, admin: Arc<Admin>, time: Duration) -> usize {
    let (start, mut sections) = (now(), 0);
    for round in 0.. {
        let wait = if round % 2 == 0 { LEASE } else { Duration::ZERO };
        let outcome = match kind {
            Kind::A | Kind::B | Kind::Permit => alone(&locker, kind, wait, &admin).await,
            Kind::Both | Kind::AllPermits => together(&locker, kind, wait, &admin).await,
        };
        match outcome {
            Ok(()) => sections += 1,
            // Of a hand-off, where the machine stalls for its first second.
            Err(error) if error.is_lost() => {}
            Err(error) => assert!(error.is_busy() && wait.is_zero(), "{kind:?}: {error}"),
        }
        if start.elapsed() >= time && sections > 0 {
            break;
        }
        rest().await;
    }
    sections
}

async fn alone(
    locker: &Locker,
    kind: Kind,
    wait: Duration,
    admin: &Admin,
) -> Result<(), LockError> {
    let request = match kind {
        Kind::A => locker.lock("a"),
        Kind::Permit => locker.lock("k").permits(3),
        _ => locker.lock("b"),
    };
    let guard = request.wait(wait).acquire().await?;
    section(slice::from_ref(guard.lease()), admin).await?;
    guard.release().await.unwrap();
    Ok(())
}

async fn together(
    locker: &Locker,
    kind: Kind,
    wait: Duration,
    admin: &Admin,
) -> Result<(), LockError> {
    let set = match kind {
        Kind::AllPermits => locker.lock("k").all_permits(3).wait(wait).acquire().await?,
        _ => locker.lock_all(["b", "a"]).wait(wait).acquire().await?,
    };
    section(set.leases(), admin).await?;
    set.release().await.unwrap();
    Ok(())
}

/// Once no lease ends before the section, however late the machine is.
async fn section(leases: &[Lease], admin: &Admin) -> Result<(), LockError> {
    for lease in leases {
        lease.extend(LEASE).await?;
    }
    let count = |verb, lease: &Lease| {
        admin.command::<i64>(&[verb, &format!("inside:{}", lease.key().as_str())])
    };
    for lease in leases {
        assert_eq!(count("INCR", lease), 1, "{lease:?} has two holders");
    }
    pause().await;
    for lease in leases {
        count("DECR", lease);
    }
    Ok(())
}

/// So long that no one waits now and then: a lock that is handed off from call to call is never free for redis-py.
#[expect(clippy::disallowed_methods, reason = "calls that are not made are the subject")]
async fn rest() {
    tokio::time::sleep(Duration::from_millis(40)).await;
}

#[expect(clippy::disallowed_methods, reason = "the other client runs in real time")]
fn now() -> Instant {
    Instant::now()
}
