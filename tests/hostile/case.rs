//! One case: what is garbled and forged, and what must hold.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, LockerBuilder};
use lockable_tests::{Admin, Dice, Disorder, Server, Share, StubNodes, cluster, wait};
use tokio::time::timeout;

use crate::board::Board;
use crate::calls::{Caller, Ended, LEASE, pause};
use crate::forger::Forger;

/// The servers, which all cases share.
pub(crate) struct World {
    server: Server,
    nodes: [Server; 2],
}

impl World {
    pub(crate) fn start() -> Self {
        let node = || cluster::start(&Server::builder(), 1).remove(0);
        Self { server: Server::start(), nodes: [node(), node()] }
    }
}

/// What happened, in one case or in all.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    cases: u64,
    ended: Ended,
    garbled: BTreeMap<String, u64>,
    /// How many forged messages were received, and how many of them wake a waiter.
    forged: u64,
    woken: u64,
    /// Those of replies that nothing can be told from.
    false_grants: u64,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.ended.add(other.ended);
        for (disorder, count) in &other.garbled {
            *self.garbled.entry(disorder.clone()).or_default() += count;
        }
        self.forged += other.forged;
        self.woken += other.woken;
        self.false_grants += other.false_grants;
    }

    /// Many cases have had all that they are for.
    pub(crate) fn is_valid(&self) {
        if self.cases < 80 {
            return;
        }
        assert_eq!(self.garbled.len(), Disorder::DETECTABLE.len() + Disorder::DECEPTIVE.len());
        assert!(self.ended.held > self.cases && self.ended.failed > self.cases / 4);
        assert!(self.forged > self.cases, "{} messages were received", self.forged);
        assert!(self.woken > self.cases / 4, "{} forged messages have woken a waiter", self.woken);
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { held, beside, failed } = self.ended;
        write!(
            f,
            "{} cases: {held} holds and {beside} beside them, {failed} errors; ",
            self.cases
        )?;
        write!(f, "garbled {:?}; {} messages forged, ", self.garbled, self.forged)?;
        write!(f, "{} of them wake-ups; ", self.woken)?;
        write!(f, "{} false grants that nothing tells apart", self.false_grants)
    }
}

/// What the seed says of a case.
#[expect(clippy::struct_excessive_bools, reason = "each is a throw of the dice of its own")]
struct Plan {
    seed: u64,
    dice: Dice,
    is_cluster: bool,
    /// Whether nothing is garbled, and waiters alone get messages.
    is_calm: bool,
    /// Whether some of what is garbled cannot be told from what is true.
    deceives: bool,
    kinds: Vec<Disorder>,
    share: Share,
    forges: bool,
    /// Whether the locker connects before anything is garbled.
    connects_first: bool,
    protocol: &'static str,
}

impl Plan {
    fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let is_calm = dice.is_one_of(4);
        let deceives = !is_calm && dice.is_one_of(2);
        let mut kinds = Disorder::DETECTABLE.to_vec();
        if deceives {
            kinds.extend(Disorder::DECEPTIVE);
        }
        dice.shuffle(&mut kinds);
        kinds.truncate(usize::try_from(1 + dice.below(4)).expect("it is small"));
        Self {
            seed,
            is_cluster: dice.is_one_of(3),
            is_calm,
            deceives,
            kinds,
            share: dice.pick(&SHARES),
            forges: is_calm || !dice.is_one_of(3),
            connects_first: !dice.is_one_of(4),
            protocol: dice.pick(&["", "?protocol=resp3"]),
            dice,
        }
    }
}

/// What a case has.
struct Scene {
    stub_nodes: StubNodes,
    admin: Admin,
    board: Board,
    /// Behind the stub node, and beside it.
    locker: Locker,
    other: Locker,
    prefix: String,
    namespace: String,
}

/// # Errors
/// What did not hold.
pub(crate) async fn run(world: Arc<World>, seed: u64) -> Result<Outcome, String> {
    let plan = Plan::of(seed);
    let scene = Scene::open(&world, &plan).await?;
    if !plan.is_calm {
        scene.stub_nodes.garble(seed, plan.share, &plan.kinds);
    }
    let (ended, [forged, woken]) = scene.work(&plan).await;
    let garbled = scene.stub_nodes.end_garbling();
    scene.is_served().await?;
    scene.is_clean().await?;
    scene.sweep();
    let wrongs = scene.board.wrongs();
    if !plan.deceives && !wrongs.is_empty() {
        return Err(wrongs.join(", "));
    }
    let mut counts = BTreeMap::new();
    for disorder in garbled {
        *counts.entry(format!("{disorder:?}")).or_default() += 1;
    }
    let false_grants = u64::try_from(wrongs.len()).expect("there are few");
    Ok(Outcome { cases: 1, ended, garbled: counts, forged, woken, false_grants })
}

impl Scene {
    async fn open(world: &World, plan: &Plan) -> Result<Self, String> {
        let (stub_nodes, server) = if plan.is_cluster {
            (StubNodes::open(&world.nodes), &world.nodes[0])
        } else {
            (StubNodes::before(&world.server), &world.server)
        };
        let (prefix, namespace) = (format!("{{h{}}}", plan.seed), format!("n{}", plan.seed));
        let base = if plan.is_cluster { stub_nodes.url() } else { stub_nodes.url_of(0) };
        let builder = |url: String| Locker::builder().url(url).prefix("").namespace(&namespace);
        let locker = builder(format!("{base}{}", plan.protocol));
        let locker = if plan.is_calm {
            locker.expire(LIMIT).command_deadline(LIMIT).connect_deadline(LIMIT)
        } else {
            locker.expire(LEASE).command_deadline(COMMAND).connect_deadline(CONNECT)
        };
        let locker = connect(locker, plan.connects_first).await?;
        // It is at the server itself.
        let url = if plan.is_cluster {
            server.url().replace("redis://", "redis-cluster://")
        } else {
            server.url()
        };
        let other = builder(url).command_deadline(LIMIT).connect_deadline(LIMIT);
        let other = connect(other, true).await?;
        let (admin, board) = (server.admin(), Board::new(plan.is_calm));
        Ok(Self { stub_nodes, admin, board, locker, other, prefix, namespace })
    }

    /// Calls and forges; gives what became of the calls, and how many messages were received.
    async fn work(&self, plan: &Plan) -> (Ended, [u64; 2]) {
        let is_over = AtomicBool::new(false);
        let mut dice = plan.dice.clone();
        let mut caller = |locker| Caller {
            locker,
            admin: &self.admin,
            board: &self.board,
            dice: Dice::new(dice.below(u64::MAX)),
            prefix: &self.prefix,
            is_calm: plan.is_calm,
        };
        let (one, two, beside) = (caller(&self.locker), caller(&self.locker), caller(&self.other));
        let forger = Forger {
            admin: &self.admin,
            dice: Dice::new(plan.seed ^ 1),
            namespace: &self.namespace,
            keys: ["a", "b", "p#1"].map(|name| format!("{}{name}", self.prefix)).to_vec(),
            is_cluster: plan.is_cluster,
            wakes_only: plan.is_calm,
        };
        let calls = async {
            let (mut both, two) = tokio::join!(one.run(CALLS), two.run(CALLS));
            is_over.store(true, Ordering::Release);
            both.add(two);
            both
        };
        let forging = async { if plan.forges { forger.run(&is_over).await } else { [0, 0] } };
        let (mut ended, messages, held) = tokio::join!(calls, forging, beside.hold_until(&is_over));
        ended.beside = held;
        (ended, messages)
    }

    /// Every lock can be acquired again by both, after the garbling has ended.
    async fn is_served(&self) -> Result<(), String> {
        for locker in [&self.locker, &self.other] {
            for name in ["a", "b", "p"] {
                ends("no service", || self.round(locker, name)).await?;
            }
        }
        Ok(())
    }

    async fn round(&self, locker: &Locker, name: &str) -> Result<(), LockError> {
        let request = locker.lock(format!("{}{name}", self.prefix)).wait(LEASE);
        let request = if name == "p" { request.permits(2) } else { request };
        request.acquire().await?.release().await
    }

    /// What is left ends: locks, and queues that no one is in.
    async fn is_clean(&self) -> Result<(), String> {
        ends("locks or queues are left", || async {
            let left = self.admin.keys(&format!("{}*", self.prefix.replace(['{', '}'], "?")));
            let shown = |key: &String| {
                format!("{key} ({:?}, {} ms)", self.admin.get(key), self.admin.pttl(key))
            };
            let left: Vec<_> = left.iter().map(shown).collect();
            if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
        })
        .await
    }

    /// Deletes the fence counters, which other cases would list for as long as they last.
    fn sweep(&self) {
        for key in self.admin.keys(&format!("{}:*", self.namespace)) {
            self.admin.del(&key);
        }
    }
}

/// Makes a locker, which may connect before anything is garbled. A busy machine misses the time for that.
async fn connect(builder: LockerBuilder, first: bool) -> Result<Locker, String> {
    let locker = builder.connect_lazy().map_err(|error| error.to_string())?;
    if first {
        ends("no connection", || locker.inspect("connected")).await?;
    }
    Ok(locker)
}

/// Tries until it succeeds.
///
/// # Errors
/// Why it has not, where it hangs.
async fn ends<T, E: ToString, F: Future<Output = Result<T, E>>>(
    what: &str,
    attempt: impl Fn() -> F,
) -> Result<(), String> {
    let mut latest = String::new();
    let tries = async {
        while let Err(error) = attempt().await {
            latest = error.to_string();
            pause(Duration::from_millis(20)).await;
        }
    };
    timeout(wait::HANG, tries).await.map_err(|_| format!("{what}: {latest}"))
}

/// A connection has about seventy replies to its handshake.
const SHARES: [Share; 5] = [
    Share::All(16),
    Share::All(64),
    Share::ButHandshakes(2),
    Share::ButHandshakes(4),
    Share::ButHandshakes(8),
];

/// How often each task calls.
const CALLS: u64 = 10;

/// A busy machine misses them now and then, and calls fail.
const COMMAND: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_millis(400);

/// Longer than what hangs is waited for.
const LIMIT: Duration = Duration::from_secs(300);
