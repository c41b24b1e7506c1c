//! What the nodes know of each other.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Cluster;
use crate::admin::Admin;

/// What one node says about all.
#[derive(Debug)]
pub(super) struct View(Vec<Line>);

/// What it says about one.
#[derive(Debug)]
struct Line {
    id: String,
    is_myself: bool,
    /// It answers, as far as the speaker knows.
    is_well: bool,
    /// Of a replica.
    master: Option<String>,
    slots: Vec<RangeInclusive<u16>>,
    /// Slots that the speaker is to give to another one.
    leaving: Vec<(u16, String)>,
}

impl View {
    pub(super) fn of(admin: &Admin) -> Self {
        let text: String = admin.command(&["CLUSTER", "NODES"]);
        Self(text.lines().map(Line::of).collect())
    }

    pub(super) fn owner(&self, slot: u16) -> Option<&str> {
        let owner = self.0.iter().find(|line| line.slots.iter().any(|range| range.contains(&slot)));
        owner.map(|line| line.id.as_str())
    }

    pub(super) fn master_of(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|line| line.id == id)?.master.as_deref()
    }

    /// Who has which slots, each with the first slot of one of its ranges, in order.
    fn owners(&self) -> Vec<(&str, u16)> {
        let ranges =
            self.0.iter().flat_map(|line| line.slots.iter().map(move |range| (line, range)));
        let mut owners: Vec<_> =
            ranges.map(|(line, range)| (line.id.as_str(), *range.start())).collect();
        owners.sort_by_key(|(_, start)| *start);
        owners
    }

    /// The slots of a node, in order.
    pub(super) fn slots_of(&self, id: &str) -> impl Iterator<Item = u16> {
        let line = self.0.iter().find(|line| line.id == id);
        line.into_iter().flat_map(|line| line.slots.iter().cloned().flatten())
    }

    /// Where the speaker is to move a slot.
    pub(super) fn target_of(&self, slot: u16) -> Option<&str> {
        let mut leaving = self.0.iter().flat_map(|line| &line.leaving);
        leaving.find(|(leaving, _)| *leaving == slot).map(|(_, id)| id.as_str())
    }

    fn is_master(&self) -> bool {
        self.0.iter().any(|line| line.is_myself && line.master.is_none())
    }
}

impl Line {
    fn of(line: &str) -> Self {
        let words: Vec<_> = line.split(' ').collect();
        let [id, _, flags, master, _, _, _, state, ref slots @ ..] = words[..] else {
            panic!("not a line of CLUSTER NODES: {line}");
        };
        let has = |flag: &str| flags.split(',').any(|word| word == flag);
        let is_ill = ["fail", "fail?", "handshake", "noaddr"].into_iter().any(has);
        Self {
            id: id.to_owned(),
            is_myself: has("myself"),
            is_well: state == "connected" && !is_ill,
            master: (master != "-").then(|| master.to_owned()),
            slots: slots.iter().filter_map(|slots| range(slots)).collect(),
            leaving: slots.iter().filter_map(|slots| leaving(slots)).collect(),
        }
    }
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// As in `[93->-<id>]`.
fn leaving(text: &str) -> Option<(u16, String)> {
    let (slot, id) = text.strip_prefix('[')?.strip_suffix(']')?.split_once("->-")?;
    Some((slot.parse().ok()?, id.to_owned()))
}

impl Cluster {
    /// Whether each node knows and reaches all.
    pub(super) fn are_acquainted(&self) -> bool {
        self.members().all(|node| {
            let View(lines) = View::of(&node.admin());
            lines.len() == self.members().count() && lines.iter().all(|line| line.is_well)
        })
    }

    /// What is still to come until the cluster is healthy.
    pub(super) fn flaw(&self) -> Option<String> {
        let nodes: Vec<_> = self.running().map(|node| (node, node.admin())).collect();
        let views: Vec<_> = nodes.iter().map(|(_, admin)| View::of(admin)).collect();
        let owners = views.first()?.owners();
        nodes.iter().zip(&views).find_map(|((_, admin), view)| {
            let flaw = self.flaw_of(admin, view, &owners)?;
            Some(format!("{flaw}: {view:#?}"))
        })
    }

    fn flaw_of(&self, admin: &Admin, view: &View, owners: &[(&str, u16)]) -> Option<&'static str> {
        let runs = |id: &str| self.member_of(id).is_some_and(|node| node.server.is_running());
        if !admin.command::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
            return Some("a node says that the cluster is down");
        }
        if view.0.len() != self.members().count() {
            return Some("a node does not know all, or others too");
        }
        if view.0.iter().any(|line| self.member_of(&line.id).is_none()) {
            return Some("a node knows one that shakes hands, or has left");
        }
        if view.0.iter().any(|line| !line.is_well && runs(&line.id)) {
            return Some("a node does not reach all that run");
        }
        let found = view.owners();
        if found != owners || !found.iter().all(|(id, _)| runs(id)) {
            return Some("a node has other masters, or masters that do not run");
        }
        (!self.follows(admin, view)).then_some("a replica does not follow its master yet")
    }

    /// A replica is linked to its master, and a master has all of its replicas that run.
    fn follows(&self, admin: &Admin, view: &View) -> bool {
        let replication = admin.info("replication");
        if !view.is_master() {
            return replication.contains("master_link_status:up");
        }
        let myself = view.0.iter().find(|line| line.is_myself).map(|line| &line.id);
        let replicas = view.0.iter().filter(|line| line.master.as_ref() == myself);
        let runs =
            |line: &&Line| self.member_of(&line.id).is_some_and(|node| node.server.is_running());
        let running = replicas.filter(runs).count();
        replication.matches("state=online").count() >= running
    }
}

/// A failover takes a few seconds; one that finds no majority begins again.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
