//! Two nodes, a locker that asks them, and the lock that it asks for.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockable_runtime::__internals::{VerbAttempt, Verbs, fence_counter};
use lockable_tests::cluster::{self, slot};
use lockable_tests::{Admin, Server, Shared, StubNodes};

use crate::support::LONG;

/// What one case has of its own: a process that asks, and a slot.
pub(super) struct Scene {
    /// The one that is tested.
    pub(super) verbs: Verbs,
    pub(super) key: String,
    pub(super) slot: u16,
    /// What `verbs` asks for.
    pub(super) attempt: VerbAttempt,
    /// A lock of the same slot, which `other` holds all the time.
    bystander: VerbAttempt,
    /// The largest fencing token of the slot so far.
    pub(super) token: u64,
    stage: Stage,
}

/// What several cases have, one after the other: to open it takes longer than most of them.
pub(super) struct Stage {
    pub(super) stub_nodes: StubNodes,
    /// It meets no answer of a case's, but for those about its own locks.
    pub(super) other: Verbs,
    nodes: Arc<Nodes>,
}

/// Stages that no case is on.
#[derive(Default)]
pub(super) struct Stages(Mutex<Vec<Stage>>);

impl Stages {
    pub(super) fn take(&self) -> Stage {
        self.free().pop().unwrap_or_else(Stage::open)
    }

    /// A case is over that has left nothing behind.
    pub(super) fn give_back(&self, scene: Scene) {
        let stage = scene.stage;
        stage.stub_nodes.reset();
        self.free().push(stage);
    }

    fn free(&self) -> MutexGuard<'_, Vec<Stage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    pub(super) fn open() -> Self {
        let nodes = Nodes::shared();
        let stub_nodes = StubNodes::open(nodes.servers());
        let other = Verbs::open_impatient(&stub_nodes.url(), LONG).unwrap();
        Self { stub_nodes, other, nodes }
    }
}

impl Deref for Scene {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

/// Servers that have all slots each.
pub(super) struct Nodes([Server; 2]);

impl Nodes {
    /// Those that all tests share.
    pub(super) fn shared() -> Arc<Self> {
        static SHARED: Shared<Nodes> = Shared::unstarted();
        SHARED.get(Self::start)
    }

    fn start() -> Self {
        let start = || cluster::start(&Server::builder(), 1).remove(0);
        std::thread::scope(|scope| {
            let other = scope.spawn(start);
            Self([start(), other.join().unwrap()])
        })
    }

    pub(super) fn servers(&self) -> &[Server; 2] {
        &self.0
    }
}

impl Scene {
    pub(super) async fn begin(deadline: Duration) -> Self {
        Self::begin_on(Stage::open(), deadline).await
    }

    pub(super) async fn begin_on(stage: Stage, deadline: Duration) -> Self {
        let (stub_nodes, other) = (&stage.stub_nodes, &stage.other);
        let verbs = Verbs::open_impatient(&stub_nodes.url(), deadline).unwrap();
        let (key, slot) = fresh("k");
        let attempt = verbs.attempt(&key, LONG, None).unwrap();
        let bystander = other.attempt(&format!("{{{key}}}:bystander"), LONG, None).unwrap();
        // A busy machine may miss the time to connect; the case has a limit.
        let token = loop {
            if let Ok(Some(token)) = other.acquire(&bystander).await {
                break token;
            }
        };
        Self { verbs, key, slot, attempt, bystander, token, stage }
    }

    pub(super) fn fence(&self) -> String {
        fence_counter(&self.key).unwrap()
    }

    pub(super) fn queue(&self) -> String {
        format!("lockable:queue:{{{}}}", self.key)
    }

    pub(super) fn admin(&self, node: usize) -> Admin {
        self.nodes.servers()[node].admin()
    }

    /// Moves the slot to the other node, with all that is there.
    pub(super) fn move_slot(&self) {
        let keys: Vec<String> =
            self.admin(0).command(&["CLUSTER", "GETKEYSINSLOT", &self.slot.to_string(), "100"]);
        self.move_keys(&keys);
        self.stub_nodes.assign([self.slot], 1);
    }

    /// Moves keys to the other node, as far as they are there.
    pub(super) fn move_keys<S: AsRef<str>>(&self, keys: &[S]) {
        let port = self.nodes.servers()[1].addr().port().to_string();
        let to = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
        let words: Vec<_> = to.into_iter().chain(keys.iter().map(AsRef::as_ref)).collect();
        self.admin(0).try_command(&words).unwrap();
    }

    /// The error that names the other node's stub node.
    pub(super) fn elsewhere(&self, code: &str) -> String {
        format!("{code} {} {}", self.slot, self.stub_nodes.addr(1))
    }

    /// After all: the bystander still holds its lock, the next token is larger, and nothing is left behind.
    pub(super) async fn is_clean(&self) {
        let renewed = self.other.renew(&[(self.bystander.clone(), None)]).await.unwrap();
        assert_eq!(format!("{renewed:?}"), "[Held]");
        let next = self.verbs.attempt(&self.key, LONG, None).unwrap();
        let token = self.verbs.acquire(&next).await.unwrap().expect("the lock is free");
        assert!(token > self.token, "{token} after {}", self.token);
        for attempt in [&next, &self.bystander] {
            self.other.release(attempt, None, Duration::ZERO).await.unwrap();
        }
        for node in 0..2 {
            let slot = self.slot.to_string();
            let left: Vec<String> =
                self.admin(node).command(&["CLUSTER", "GETKEYSINSLOT", &slot, "9"]);
            // A queue that a call could not leave may stay, where its slot moved meanwhile.
            // What a connection tries when it opens ends at once.
            for name in left.into_iter().filter(|name| !name.starts_with("lockable:probe:")) {
                let may_stay = [self.fence(), self.queue()].contains(&name);
                assert!(may_stay, "{name} is left at node {node}");
                assert_ne!(self.admin(node).pttl(&name), -1, "{name} has no end");
            }
        }
    }
}

/// A key whose slot no other case has.
pub(super) fn fresh(start: &str) -> (String, u16) {
    static TAKEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = taken.get_or_insert_default();
    let mut keys = (0..).map(|number: u32| format!("answers:{start}:{number}"));
    keys.find_map(|key| {
        let slot = slot(&key);
        // The last ones are those of the other stub_nodes.
        (slot < cluster::SLOTS - 2 && taken.insert(slot)).then_some((key, slot))
    })
    .unwrap()
}
