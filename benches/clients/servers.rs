//! The servers of one run, and what happens to them.

use std::collections::HashSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lockable_tests::cluster::slot;
use lockable_tests::{Cluster, Sentinels, Server};

use crate::moments::Moments;
use crate::scenario::{Event, Place, Scenario};

/// They end when this is dropped, or with this process.
pub(crate) struct Servers {
    group: Group,
    event: Event,
    /// The hash tags of the keys that are on the server, or in the slot, to which something happens.
    concerned: Vec<String>,
    /// Those of keys on other masters.
    others: Vec<String>,
}

enum Group {
    Cluster(Cluster),
    Sentinels(Sentinels),
}

impl Servers {
    pub(crate) fn start(Scenario { place, event }: Scenario) -> Self {
        match place {
            Place::Cluster => Self::cluster(event),
            Place::Sentinel => {
                let group = Group::Sentinels(Sentinels::builder().down_after(SILENCE).start());
                Self { group, event, concerned: vec!["a".to_owned()], others: Vec::new() }
            }
        }
    }

    fn cluster(event: Event) -> Self {
        let cluster = Cluster::builder().node_timeout(SILENCE).start();
        let count = if event == Event::SlotMoves { 1 } else { TAGS };
        let tags_of = |server, count| {
            let tags = (0..count).map(move |number| format!("{number}-"));
            tags.map(|start| cluster.name_at(server, &start)).collect::<Vec<_>>()
        };
        let mut masters = cluster.first_masters();
        let concerned = tags_of(masters.next().expect("a master"), count);
        let others = masters.flat_map(|master| tags_of(master, TAGS)).collect();
        Self { group: Group::Cluster(cluster), event, concerned, others }
    }

    /// As ours has it.
    pub(crate) fn url(&self) -> String {
        match &self.group {
            Group::Cluster(cluster) => cluster.url(),
            Group::Sentinels(sentinels) => sentinels.url(),
        }
    }

    /// As `load` reads them.
    pub(crate) fn tags(&self) -> [String; 2] {
        [&self.concerned, &self.others].map(|tags| tags.join(","))
    }

    /// Makes the event happen, and returns when the servers can do all that they could before.
    pub(crate) fn strike(&self, moments: &Moments) {
        match &self.group {
            Group::Cluster(cluster) => self.strike_cluster(cluster, moments),
            Group::Sentinels(sentinels) => self.strike_primary(sentinels, moments),
        }
        moments.end();
    }

    fn strike_cluster(&self, cluster: &Cluster, moments: &Moments) {
        let name = &self.concerned[0];
        let before = cluster.master_of(name);
        match self.event {
            Event::Steady => moments.begin(),
            Event::SlotMoves => return move_slot(cluster, name, moments),
            Event::Hangs | Event::Killed => self.end(before, moments),
            Event::Planned => {
                moments.begin();
                cluster.fail_over(name);
            }
        }
        if self.is_failure() {
            cluster.other_than(name, before);
        }
    }

    fn strike_primary(&self, sentinels: &Sentinels, moments: &Moments) {
        let before = sentinels.primary();
        match self.event {
            Event::Steady | Event::SlotMoves => moments.begin(),
            Event::Hangs | Event::Killed => self.end(before, moments),
            Event::Planned => {
                moments.begin();
                sentinels.fail_over();
            }
        }
        if self.is_failure() {
            sentinels.other_than(before);
        }
    }

    /// One that hangs is killed at the end of the run: no one goes back to it.
    fn end(&self, server: &Server, moments: &Moments) {
        moments.begin();
        if self.event == Event::Hangs { server.pause() } else { server.kill() }
    }

    fn is_failure(&self) -> bool {
        matches!(self.event, Event::Hangs | Event::Killed)
    }

    /// Waits until all that run know of each other, and the replicas follow.
    pub(crate) fn settle(&self) {
        match &self.group {
            Group::Cluster(cluster) => cluster.wait_until_healthy(),
            Group::Sentinels(sentinels) => drop(sentinels.primary()),
        }
    }

    /// The keys whose locks are held.
    pub(crate) fn held(&self) -> HashSet<String> {
        let masters: Vec<_> = match &self.group {
            Group::Cluster(cluster) => cluster.masters().collect(),
            Group::Sentinels(sentinels) => vec![sentinels.primary()],
        };
        let names = masters.into_iter().flat_map(|master| master.admin().keys("*:clients:*"));
        // The prefix of ours.
        names.map(|name| name.strip_prefix("disLock:").unwrap_or(&name).to_owned()).collect()
    }
}

/// As operators' tools do it, but slowly: the keys that the slot has, one by one, and then the slot.
fn move_slot(cluster: &Cluster, name: &str, moments: &Moments) {
    let (number, source) = (slot(name), cluster.master_of(name).admin());
    let target = cluster.first_masters().nth(1).expect("another master");
    for filler in 0..MOVE.as_millis() / STEP.as_millis() {
        source.set(&format!("{{{name}}}:filler:{filler}"), "");
    }
    moments.begin();
    cluster.begin_move(number, target);
    let end = Instant::now() + MOVE;
    while Instant::now() < end {
        sleep(STEP);
        let next = ["CLUSTER", "GETKEYSINSLOT", &number.to_string(), "1"];
        for key in source.command::<Vec<String>>(&next) {
            cluster.move_key(&key).expect("a key can be moved");
        }
    }
    cluster.end_move(number).expect("a slot can be moved");
}

/// How long nodes of a cluster, and Sentinels, wait until they take a silent server for failed.
const SILENCE: Duration = Duration::from_secs(2);

/// How many slots of a master are used.
const TAGS: usize = 8;

/// How long a slot is being moved.
const MOVE: Duration = Duration::from_secs(4);

/// From one key to the next.
const STEP: Duration = Duration::from_millis(100);
