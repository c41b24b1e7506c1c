//! How long after a deadline something ends, and how soon holders learn of what has happened.

use std::future::pending;
use std::mem;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, LockerBuilder, distributed_lock, shutdown};
use lockable_tests::{Admin, Peer, Sentinels, Server, wait};

use crate::{Figure, block_on, now};

/// Of commands and of connecting.
const DEADLINE: Duration = Duration::from_millis(500);

const LEASE: Duration = Duration::from_secs(2);

/// What comes later than a deadline, or has none, and takes no time itself.
const AT_ONCE: Duration = Duration::from_millis(50);

/// Servers that give no answer, or are not there.
pub(crate) fn deadlines() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let locker = impatient(&server.url()).connect().await.expect("a server");
        let behind = behind_a_dropped_call(&locker);
        server.pause();
        let (call, error) = timed(locker.lock("k").acquire()).await;
        error.expect_err("there is no answer");
        let mut longest = call;
        for _ in 0..4 {
            let (took, error) = timed(locker.lock("k").acquire()).await;
            error.expect_err("there is no answer");
            longest = longest.max(took);
        }
        let (connecting, error) = timed(impatient(&server.url()).connect()).await;
        error.expect_err("there is no answer");
        let lazy = impatient(&server.url()).connect_lazy().expect("a URL");
        let (check, report) = timed(lazy.check()).await;
        assert!(!report.is_ok(), "{report}");
        server.kill();
        let closed = Locker::builder().url(server.url()).connect_deadline(LEASE).connect();
        let (closed, error) = timed(closed).await;
        error.expect_err("there is no server");
        let (drain, _) = timed(shutdown(Duration::ZERO)).await;
        vec![
            Figure::new("a sync call behind a dropped one", behind, DEADLINE + AT_ONCE),
            Figure::new("a call at a silent server", call, DEADLINE + AT_ONCE),
            Figure::new("calls at a silent server, longest", longest, 3 * DEADLINE + AT_ONCE),
            Figure::new("connecting to a silent server", connecting, DEADLINE + AT_ONCE),
            Figure::new("a check of a silent server", check, 2 * DEADLINE + AT_ONCE),
            Figure::new("connecting to a closed port", closed, AT_ONCE),
            Figure::new("a drain without time", drain, AT_ONCE),
        ]
    })
}

/// The answer to the dropped call comes over the connection of this runtime, which the sync call blocks.
fn behind_a_dropped_call(locker: &Locker) -> Duration {
    #[distributed_lock(key = "k", locker = locker.clone())]
    fn sync(locker: &Locker) -> Result<(), LockError> {
        Ok(())
    }
    let mut call = Box::pin(locker.lock("k").acquire());
    assert!(pin!(&mut call).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(call);
    let start = now();
    sync(locker).expect("it is free");
    start.elapsed()
}

/// Losses of leases.
pub(crate) fn losses() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let locker = Locker::connect(&server.url()).await.expect("a server");
        let mut guards = Vec::new();
        for number in 0..50 {
            let guard = locker.lock(format!("held:{number}")).renew().acquire().await;
            guards.push(guard.expect("it is free"));
        }
        server.restart();
        let reached = timed(async {
            locker.lock("other").run(async {}).await.expect("the server is back");
            for guard in &guards {
                assert!(guard.lease().lost().await.is_lost());
            }
        });
        let (restart, ()) = reached.await;
        drop(guards);
        let guard = locker.lock("deleted").renew().acquire().await.expect("it is free");
        // From the first look on, a deletion is noticed at once.
        let calls = server.admin().command_calls("get");
        wait::until_async(wait::HANG, async || server.admin().command_calls("get") > calls).await;
        server.admin().del("disLock:deleted");
        let (deleted, _) = timed(guard.lease().lost()).await;
        let request = locker.lock("k").expire(LEASE).renew();
        let (stopped, error) = timed(request.run(async {
            server.pause();
            pending::<()>().await;
        }))
        .await;
        assert!(error.expect_err("it has no end").is_lost());
        server.resume();
        vec![
            Figure::new("all of 50 holders, of a restart without data", restart, 4 * AT_ONCE),
            Figure::new("a holder, of a deleted lock", deleted, 4 * AT_ONCE),
            Figure::new("a body whose lease ends", stopped, LEASE + AT_ONCE),
        ]
    })
}

/// Connections while some Sentinels, or all but one, give no answer.
pub(crate) fn sentinels() -> Vec<Figure> {
    block_on(async {
        let group = Sentinels::builder().down_after(wait::HANG).start();
        let [first, second, _] = group.sentinels() else { panic!("there are three") };
        first.pause();
        let (one, locker) = timed(Locker::connect(&group.url())).await;
        locker.expect("two answer");
        second.pause();
        let (two, locker) = timed(Locker::connect(&group.url())).await;
        locker.expect("one answers");
        for frozen in [first, second] {
            frozen.resume();
        }
        vec![
            Figure::new("a connection beside a frozen Sentinel", one, 10 * AT_ONCE),
            Figure::new("a connection beside two frozen ones", two, 20 * AT_ONCE),
        ]
    })
}

/// From the end of a leader, whose lease is a second, to its successor.
pub(crate) fn leaders() -> Vec<Figure> {
    block_on(async {
        let server = Server::start();
        let (admin, locker) = (server.admin(), Locker::connect(&server.url()).await);
        let locker = locker.expect("a server");
        let mut workers: Vec<_> = (0..3).map(|number| candidate(&server, number)).collect();
        let mut leader = leads_other_than(&admin, "").await;
        let ends = ["killed", "stopped", "resigned", "told to step down"];
        let mut longest = [Duration::ZERO; 4];
        for round in 0..2 * ends.len() {
            let number: usize =
                leader.rsplit(' ').next().and_then(|name| name.parse().ok()).expect("a worker");
            let (end, start) = (round % ends.len(), now());
            match ends[end] {
                "killed" => {
                    mem::replace(&mut workers[number], candidate(&server, number)).kill();
                }
                "stopped" => workers[number].pause(),
                "resigned" => workers[number].say("resign"),
                _ => {
                    let held = locker.admin().holder("k").await.expect("a server");
                    let (held, admin) = (held.expect("a leader"), locker.admin());
                    let asked = admin.revoke(&held, "step down", wait::HANG).await;
                    asked.expect("a server");
                }
            }
            leader = leads_other_than(&admin, &leader).await;
            longest[end] = longest[end].max(start.elapsed());
            workers[number].resume();
        }
        let seconds = Duration::from_secs(2);
        let bounds = [seconds, seconds, 2 * AT_ONCE, seconds];
        let rows = ends.into_iter().zip(longest).zip(bounds);
        rows.map(|((end, took), bound)| Figure::new(format!("after one was {end}"), took, bound))
            .collect()
    })
}

fn candidate(server: &Server, number: usize) -> Peer {
    let (url, program) = (server.url(), env!("CARGO_BIN_EXE_worker"));
    let peer = Peer::start(program, ["lead", url.as_str(), &number.to_string(), "1000"]);
    assert_eq!(peer.hear(), "ready");
    peer
}

/// The owner token of the leader, once it is another one.
async fn leads_other_than(admin: &Admin, former: &str) -> String {
    let mut leader = String::new();
    let is_other = async || {
        leader = admin.get("disLock:k").unwrap_or_default();
        !leader.is_empty() && leader != former
    };
    wait::until_async(wait::HANG, is_other).await;
    leader
}

fn impatient(url: &str) -> LockerBuilder {
    Locker::builder().url(url).command_deadline(DEADLINE).connect_deadline(DEADLINE)
}

async fn timed<F: IntoFuture>(future: F) -> (Duration, F::Output) {
    let start = now();
    let output = future.await;
    (start.elapsed(), output)
}
