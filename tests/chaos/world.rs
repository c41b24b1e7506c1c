//! The servers, the processes, and what is between them.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use lockable_tests::{Cluster, Dice, Proxy, Sentinels, Server};

use crate::address::Address;
use crate::keys::{KEYS, LEADER, PERMITS, QUIET};
use crate::nemesis;
use crate::record::Record;
use crate::settings::{Settings, Topology};
use crate::slot::{Kind, Slot, program};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) topology: Topology,
    pub(crate) servers: Servers,
    pub(crate) slots: Vec<Slot>,
    pub(crate) record: Record,
    /// How many elections of a cluster there were.
    pub(crate) turns: AtomicUsize,
    /// When the last one was over.
    pub(crate) elected: AtomicU64,
    /// What the locks protect.
    _resource: Server,
}

/// Where the locks are.
#[derive(Debug)]
pub(crate) enum Servers {
    One(Address),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl World {
    pub(crate) fn start(settings: &Settings, kinds: &[nemesis::Kind], folder: &Path) -> Self {
        let Settings { topology, seed, .. } = *settings;
        let (servers, resource) = (Servers::start(topology, kinds), Server::start());
        let mut dice = Dice::new(seed);
        let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Program || has_program());
        let slots = kinds.map(|kind| {
            let (stub_nodes, url) = servers.stub_nodes();
            Slot::new(kind, stub_nodes, url, resource.url(), folder, dice.below(u64::MAX))
        });
        let slots = slots.collect();
        let record = Record::create(folder);
        let (turns, elected) = Default::default();
        Self { topology, servers, slots, record, turns, elected, _resource: resource }
    }
}

fn has_program() -> bool {
    let program = program();
    let is_there = program.exists();
    if !is_there {
        eprintln!("SKIPPED: `lockable run`, because {} is not built", program.display());
    }
    is_there
}

impl Servers {
    fn start(topology: Topology, kinds: &[nemesis::Kind]) -> Self {
        match topology {
            Topology::One | Topology::Aof => Self::One(Address::start(topology, kinds)),
            Topology::Sentinel => {
                Self::Sentinels(Sentinels::builder().down_after(DOWN_AFTER).start())
            }
            Topology::Cluster => {
                let builder = Cluster::builder().node_timeout(DOWN_AFTER).strangers(1);
                Self::Cluster(builder.start())
            }
        }
    }

    /// What leads one process to the servers.
    fn stub_nodes(&self) -> (Vec<Proxy>, String) {
        match self {
            Self::One(address) => {
                let stub_node = Proxy::start(address.primary());
                let url = stub_node.url();
                (vec![stub_node], url)
            }
            Self::Sentinels(group) => {
                let stub_nodes = group.all_stub_nodes();
                let url = group.url_through(&stub_nodes);
                (stub_nodes, url)
            }
            Self::Cluster(cluster) => {
                let stub_nodes = cluster.stub_nodes();
                let url = cluster.url_through(&stub_nodes);
                (stub_nodes, url)
            }
        }
    }

    pub(crate) fn all(&self) -> Vec<&Server> {
        match self {
            Self::One(address) => address.servers().collect(),
            Self::Sentinels(group) => group.servers().iter().collect(),
            Self::Cluster(cluster) => cluster.servers().collect(),
        }
    }

    /// Those that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Server> {
        self.all().into_iter().filter(|server| server.is_running())
    }

    /// The fencing token that the next grant would have, or a little more: those of the grants until now are below it.
    pub(crate) fn next_token(&self) -> u64 {
        let behind = match self {
            Self::One(address) => address.behind(),
            Self::Sentinels(_) | Self::Cluster(_) => Duration::ZERO,
        };
        let behind = u64::try_from(behind.as_micros()).expect("it is short");
        self.running().map(time).max().unwrap_or_default() + behind
    }

    /// What the newest server of them calls itself.
    pub(crate) fn version(&self) -> String {
        let information = self.all()[0].admin().info("server");
        let field = |name: &str| {
            let line = information.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::to_owned)
        };
        let valkey = field("valkey_version:").map(|version| format!("Valkey {version}"));
        valkey.unwrap_or_else(|| format!("Redis {}", field("redis_version:").unwrap_or_default()))
    }

    pub(crate) fn save_logs(&self, folder: &Path) {
        for (number, server) in self.all().into_iter().enumerate() {
            drop(std::fs::write(folder.join(format!("server.{number}.log")), server.log()));
        }
    }
}

/// In microseconds, as fencing tokens count.
pub(crate) fn time(server: &Server) -> u64 {
    let (seconds, micros): (u64, u64) = server.admin().command(&["TIME"]);
    seconds * 1_000_000 + micros
}

/// The locks as the servers have them, but for those that are taken without a holder: done, or in a ticket.
pub(crate) static LOCKS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let keys = KEYS.into_iter().chain(QUIET).chain([LEADER]).map(str::to_owned);
    let permits = (1..=3).map(|number| format!("{{{PERMITS}}}#{number}"));
    keys.chain(permits).map(|key| &*format!("disLock:{key}").leak()).collect()
});

/// One of those for which few wait.
pub(crate) fn quiet_lock() -> &'static str {
    LOCKS[KEYS.len()]
}

/// Longer than a paused server is silent.
const DOWN_AFTER: Duration = Duration::from_secs(2);
