//! What calls make of answers that are none.
//!
//! Goal: a body that runs without its lock, a lock that no one releases, or a locker that is of no use any more.
//! Method: the answers to a request and to its repetition are garbled, when the server has done what was asked for.
//! Each call ends well, or with an error that names the server. After that the lock is free, and can be taken.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

use lockable_runtime::__internals::fence_counter;
use lockable_runtime::{LockError, LockGuard, Locker};
use lockable_tests::{Admin, Answer, Cue, Garble, Server, StubNodes, wait};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet, spawn_local};

use super::scene::{Nodes, fresh};
use crate::support::{COMMAND, LIMIT, LONG, Runs, ample, patient};

/// The request whose answers are garbled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// `SET` of an acquisition.
    Acquire,
    /// The script that seeds its fence counter.
    Seed,
    /// `INCR` of one that was seeded.
    Count,
    /// `GET` of the lock, after a fence counter was lost.
    Look,
    /// A place in the queue.
    Enqueue,
    Release,
    Extend,
    Inspect,
}

const PLACES: [At; 8] =
    [At::Acquire, At::Seed, At::Count, At::Look, At::Enqueue, At::Release, At::Extend, At::Inspect];

#[tokio::test]
async fn a_garbled_answer_leaves_no_lock_and_harms_no_call() {
    LocalSet::new().run_until(run_all()).await;
}

async fn run_all() {
    let (nodes, at_once) = (Nodes::shared(), Arc::new(Semaphore::new(AT_ONCE)));
    let mut cases = JoinSet::new();
    for at in PLACES {
        for garble in Garble::ALL {
            let (nodes, at_once) = (Arc::clone(&nodes), Arc::clone(&at_once));
            cases.spawn_local(async move {
                let _permit = at_once.acquire().await.unwrap();
                let outcome = spawn_local(run(nodes, at, garble)).await;
                outcome.err().map(|_| format!("{at:?} {garble:?}"))
            });
        }
    }
    let failed: Vec<_> = cases.join_all().await.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{failed:?}");
}

/// Goal: the replies behind a garbled one may be those to other requests, so no call gets them.
/// Method: the connections of the call and of the background are counted by their first command.
#[tokio::test]
async fn no_call_uses_the_connection_of_a_garbled_answer() {
    let (server, (key, _)) = (Server::start(), fresh("left"));
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    let locker = ample(&stub_nodes.url_of(0)).prefix("").connect().await.unwrap();
    let connections = || stub_nodes.count(0, &Cue::of(["HELLO"]));
    drop(locker.lock(&key).acquire().await.unwrap());
    wait::until_async(LIMIT, async || server.admin().get(&key).is_none()).await;
    let before = connections();
    let set = Cue::of(["SET"]).about(&key).times(1);
    stub_nodes.answer(0, set, Answer::Garbled(Garble::Text));
    // The request is repeated.
    locker.lock(&key).try_acquire().await.unwrap().release().await.unwrap();
    assert!(connections() > before);
}

/// Most of them wait.
const AT_ONCE: usize = 12;

struct Case {
    stub_nodes: StubNodes,
    admin: Admin,
    /// Its requests are not garbled.
    other: Locker,
    locker: Locker,
    key: String,
    runs: Runs,
}

async fn run(nodes: Arc<Nodes>, at: At, garble: Garble) {
    let [server, _] = nodes.servers();
    let (stub_nodes, (key, _)) = (StubNodes::of_one_slot_each(server), fresh("garbled"));
    let builder = patient(&stub_nodes.url_of(0)).command_deadline(COMMAND).connect_deadline(LONG);
    let locker = builder.prefix("").connect().await.unwrap();
    let other = ample(&server.url()).prefix("").connect().await.unwrap();
    let (admin, runs) = (server.admin(), Runs::default());
    let case = Case { stub_nodes, admin, other, locker, key, runs };
    if let Err(error) = wait::ends(case.call(at, garble)).await {
        let server = case.stub_nodes.addr(0).to_string();
        assert!(error.is_unavailable() && error.to_string().contains(&server), "{error}");
        assert_eq!(case.runs.count(), 0, "{error}");
    }
    wait::until_async(LIMIT, async || case.admin.get(&case.key).is_none()).await;
    let ran = case.runs.count();
    // A connection that hangs is used until the third call in vain.
    wait::until_async(LIMIT, async || case.try_run().await.is_ok()).await;
    assert_eq!(case.runs.count(), ran + 1);
}

impl Case {
    /// Garbles the answers, and calls.
    async fn call(&self, at: At, garble: Garble) -> Result<(), LockError> {
        let garble = || self.garble(at, garble);
        match at {
            At::Acquire | At::Seed | At::Count | At::Look => {
                if matches!(at, At::Count | At::Look) {
                    self.seed().await;
                }
                if at == At::Look {
                    self.admin.del(&self.fence());
                }
                garble();
                let ran = self.try_run().await;
                assert!(!ran.as_ref().is_err_and(LockError::is_busy), "no one else holds it");
                ran?;
            }
            At::Enqueue => {
                let request = self.other.lock(&self.key).acquire();
                let held = request.await.unwrap();
                let asked = garble();
                let release = async {
                    wait::until_async(LIMIT, async || self.stub_nodes.count(0, &asked) > 0).await;
                    held.release().await.unwrap();
                };
                let waiting = self.locker.lock(&self.key).run(self.body());
                tokio::join!(waiting, release).0?;
            }
            At::Release | At::Extend | At::Inspect => {
                let held = self.hold().await;
                garble();
                match at {
                    At::Extend => held.lease().extend(LONG).await?,
                    At::Inspect => assert!(self.locker.inspect(&self.key).await?.is_some()),
                    _ => {}
                }
                held.release().await?;
            }
        }
        Ok(())
    }

    fn garble(&self, at: At, garble: Garble) -> Cue {
        const SCRIPT: [&str; 2] = ["EVALSHA", "EVAL"];
        let cue = match at {
            At::Acquire => Cue::of(["SET"]).about(&self.key),
            At::Seed => Cue::of(SCRIPT).about(self.fence()),
            At::Count => Cue::of(["INCR"]).about(self.fence()),
            At::Look => Cue::of(["GET"]).about(&self.key),
            At::Enqueue | At::Release | At::Extend | At::Inspect => {
                Cue::of(SCRIPT).about(&self.key)
            }
        };
        self.stub_nodes.answer(0, cue.clone().times(2), Answer::Garbled(garble));
        cue
    }

    fn fence(&self) -> String {
        fence_counter(&self.key).unwrap()
    }

    /// A busy machine may miss the deadline.
    async fn hold(&self) -> LockGuard {
        loop {
            if let Ok(guard) = self.locker.lock(&self.key).acquire().await {
                return guard;
            }
        }
    }

    /// The connection has seeded the fence counter from now on.
    async fn seed(&self) {
        drop(self.hold().await.release().await);
        wait::until_async(LIMIT, async || self.admin.get(&self.key).is_none()).await;
    }

    async fn try_run(&self) -> Result<(), LockError> {
        self.locker.lock(&self.key).try_run(self.body()).await
    }

    /// What runs under the lock alone.
    fn body(&self) -> impl Future<Output = ()> {
        poll_fn(|_| {
            assert!(self.admin.get(&self.key).is_some());
            self.runs.add();
            Poll::Ready(())
        })
    }
}
