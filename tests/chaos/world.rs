//! The servers, the processes, and what is between them.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::time::Duration;

use lockable_tests::{Cluster, Dice, Proxy, Sentinels, Server, clock};

use crate::record::Record;
use crate::settings::{Settings, Topology};
use crate::slot::{Kind, Slot, program};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) topology: Topology,
    pub(crate) servers: Servers,
    pub(crate) slots: Vec<Slot>,
    pub(crate) record: Record,
    /// How far the server's clock is ahead of the machine's, in milliseconds.
    pub(crate) clock: AtomicI64,
    /// How many elections of a cluster there were.
    pub(crate) turns: AtomicUsize,
    /// What the locks protect.
    _resource: Server,
}

/// Where the locks are.
#[derive(Debug)]
pub(crate) enum Servers {
    One(Server),
    Sentinels(Sentinels),
    Cluster(Cluster),
}

impl World {
    pub(crate) fn start(settings: &Settings, folder: &Path) -> Self {
        let Settings { topology, seed, .. } = *settings;
        let (servers, resource) = (Servers::start(topology), Server::start());
        let mut dice = Dice::new(seed);
        let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Program || has_program());
        let slots = kinds.map(|kind| {
            let (doors, url) = servers.doors();
            Slot::new(kind, doors, url, resource.url(), folder, dice.below(u64::MAX))
        });
        let slots = slots.collect();
        let record = Record::create(folder);
        Self {
            topology,
            servers,
            slots,
            record,
            clock: AtomicI64::new(0),
            turns: AtomicUsize::new(0),
            _resource: resource,
        }
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
    fn start(topology: Topology) -> Self {
        let one =
            || if clock::can_be_set() { Server::builder().clock() } else { Server::builder() };
        match topology {
            Topology::One => Self::One(one().start()),
            Topology::Aof => Self::One(one().config("appendonly", "yes").start()),
            Topology::Sentinel => {
                Self::Sentinels(Sentinels::builder().down_after(DOWN_AFTER).start())
            }
            Topology::Cluster => Self::Cluster(Cluster::builder().node_timeout(DOWN_AFTER).start()),
        }
    }

    /// What leads one process to the servers. Of a group, only the way to the Sentinels has doors: servers name
    /// each other by their own addresses.
    fn doors(&self) -> (Vec<Proxy>, String) {
        match self {
            Self::One(server) => {
                let door = Proxy::start(server);
                let url = door.url();
                (vec![door], url)
            }
            Self::Sentinels(group) => {
                let doors = group.doors();
                let url = group.url_through(&doors);
                (doors, url)
            }
            Self::Cluster(cluster) => (Vec::new(), cluster.url()),
        }
    }

    pub(crate) fn all(&self) -> Vec<&Server> {
        match self {
            Self::One(server) => vec![server],
            Self::Sentinels(group) => group.servers().iter().collect(),
            Self::Cluster(cluster) => cluster.servers().collect(),
        }
    }

    /// Those that run.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Server> {
        self.all().into_iter().filter(|server| server.is_running())
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

pub(crate) const KEYS: [&str; 3] = ["a", "b", "c"];

/// The locks as the servers have them.
pub(crate) const LOCKS: [&str; 7] = [
    "disLock:a",
    "disLock:b",
    "disLock:c",
    "disLock:d",
    "disLock:{p}#1",
    "disLock:{p}#2",
    "disLock:{p}#3",
];

/// Longer than a paused server is silent.
const DOWN_AFTER: Duration = Duration::from_secs(2);
