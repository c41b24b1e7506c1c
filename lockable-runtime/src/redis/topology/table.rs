//! Which node has which slot, and the connections to each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::maps::Map;
use super::server::Server;
use crate::core::process::clock::Moment;
use crate::core::types::slot::{SLOTS, Slot};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::node::Node;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::reports::ServerSlots;

/// How long others are not believed that a node has a slot which it gave away: they may not have heard of it. Nodes
/// tell each other of a failover at once, and of all else within a second.
const OUTDATED: Duration = Duration::from_secs(2);

type SlotsOf = Box<dyn Fn(usize) -> Arc<dyn ServerSlots> + Send + Sync>;

pub(super) struct SlotTable {
    slot_owners: Vec<SlotOwner>,
    servers: HashMap<Endpoint, Arc<Server>>,
    replicas: HashSet<Endpoint>,
    next_number: usize,
    opener: Opener,
    slots_of: SlotsOf,
}

#[derive(Clone, Default)]
struct SlotOwner {
    owner: Option<Arc<Server>>,
    /// When the last move became known; zero if never.
    moved_at: Moment,
    /// The node that has itself said then that the slot is elsewhere.
    left: Option<usize>,
}

#[derive(Default)]
pub(super) struct TableChanges {
    /// The slots that changed hands, with their nodes before and after.
    pub(super) moves: Vec<(Slot, [Arc<Server>; 2])>,
    pub(super) left: Vec<Arc<Server>>,
}

impl SlotTable {
    pub(super) fn new(opener: Opener, slots_of: SlotsOf) -> Self {
        let slot_owners = vec![SlotOwner::default(); SLOTS];
        let servers = HashMap::new();
        let replicas = HashSet::new();
        Self { slot_owners, servers, replicas, next_number: 0, opener, slots_of }
    }

    pub(super) fn owner(&self, slot: Slot) -> Option<&Arc<Server>> {
        self.slot_owner(slot)?.owner.as_ref()
    }

    pub(super) fn moved_at(&self, slot: Slot) -> Moment {
        self.slot_owner(slot).map_or_else(Moment::default, |slot_owner| slot_owner.moved_at)
    }

    pub(super) fn masters(&self) -> Vec<Arc<Server>> {
        let owners = self.owners();
        let has_slots = |server: &&Arc<Server>| owners.contains(&server.number);
        self.servers.values().filter(has_slots).cloned().collect()
    }

    pub(super) fn replicas(&self) -> impl Iterator<Item = &Endpoint> {
        self.replicas.iter()
    }

    /// The node at this place, new if unknown; it may have this slot.
    pub(super) fn server_at(&mut self, endpoint: &Endpoint, slot: Slot) -> Arc<Server> {
        if let Some(server) = self.servers.get(endpoint) {
            return Arc::clone(server);
        }
        let node = Arc::new(Node::new(endpoint.clone(), slot));
        let number = self.next_number;
        let opener = self.opener.of_node(&node).with_slots((self.slots_of)(number));
        let server = Server::new(number, Some(node), opener);
        self.next_number += 1;
        self.servers.insert(endpoint.clone(), Arc::clone(&server));
        server
    }

    /// A node has said that a slot is at this place now. Changes nothing if the node is not known to have it: another
    /// request reported that before.
    pub(super) fn move_slot(
        &mut self,
        slot: Slot,
        from: &Endpoint,
        to: &Endpoint,
        now: Moment,
    ) -> TableChanges {
        let mut changes = TableChanges::default();
        let is_known = self.owner(slot).is_none_or(|owner| owner.endpoint() == Some(from));
        if is_known && from != to {
            let left = self.servers.get(from).map(|server| server.number);
            self.set_owner(slot, to, now, left, &mut changes);
        }
        changes
    }

    /// What most nodes say that is new here and may be believed.
    pub(super) fn news<'a>(
        &self,
        named: impl Iterator<Item = (Slot, &'a Endpoint)>,
        now: Moment,
    ) -> Vec<(Slot, &'a Endpoint)> {
        let is_news = |(slot, endpoint): &(Slot, &Endpoint)| {
            let is_known =
                self.owner(*slot).is_some_and(|owner| owner.endpoint() == Some(*endpoint));
            !is_known && !self.is_outdated(*slot, endpoint, now)
        };
        named.filter(is_news).collect()
    }

    /// Nodes have said where these slots are. A node without slots is left, and its open requests are sent elsewhere.
    pub(super) fn apply(&mut self, news: &[(Slot, &Endpoint)], now: Moment) -> TableChanges {
        let mut changes = TableChanges::default();
        for (slot, endpoint) in news {
            self.set_owner(*slot, endpoint, now, None, &mut changes);
        }
        let owners = self.owners();
        let is_abandoned = |it: &Server| has_had_slots(it) && !owners.contains(&it.number);
        changes.left = self.servers.values().filter(|it| is_abandoned(it)).cloned().collect();
        self.servers.retain(|_, server| !is_abandoned(server));
        changes
    }

    pub(super) fn set_replicas(&mut self, maps: &[Map]) {
        let named = maps.iter().flatten().flat_map(|shard| shard.replicas.iter().cloned());
        self.replicas = named.collect();
    }

    fn owners(&self) -> HashSet<usize> {
        let number = |slot_owner: &SlotOwner| Some(slot_owner.owner.as_ref()?.number);
        let mut numbers: Vec<_> = self.slot_owners.iter().filter_map(number).collect();
        // Slots side by side mostly have the same node.
        numbers.dedup();
        numbers.into_iter().collect()
    }

    fn set_owner(
        &mut self,
        slot: Slot,
        endpoint: &Endpoint,
        now: Moment,
        left: Option<usize>,
        changes: &mut TableChanges,
    ) {
        if self.owner(slot).is_some_and(|owner| owner.endpoint() == Some(endpoint)) {
            return;
        }
        let server = self.server_at(endpoint, slot);
        if let Some(node) = &server.node {
            node.has(slot);
        }
        let Some(slot_owner) = self.slot_owners.get_mut(slot.index()) else { return };
        if let Some(before) = slot_owner.owner.replace(Arc::clone(&server)) {
            (slot_owner.moved_at, slot_owner.left) = (now, left);
            changes.moves.push((slot, [before, server]));
        }
    }

    /// Whether the nodes that name this place may not have heard that the slot has left it.
    fn is_outdated(&self, slot: Slot, endpoint: &Endpoint, now: Moment) -> bool {
        let Some(SlotOwner { moved_at, left: Some(left), .. }) = self.slot_owner(slot) else {
            return false;
        };
        let is_abandoned = self.servers.get(endpoint).is_some_and(|server| server.number == *left);
        is_abandoned && now.since(*moved_at) < OUTDATED
    }

    fn slot_owner(&self, slot: Slot) -> Option<&SlotOwner> {
        self.slot_owners.get(slot.index())
    }
}

fn has_had_slots(server: &Server) -> bool {
    server.node.as_ref().is_some_and(|node| node.has_had_slots())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::background::background;
    use crate::core::settings::Settings;

    struct NoSlots;

    impl ServerSlots for NoSlots {
        fn have(&self, _: Slot) -> bool {
            false
        }

        fn doubt(&self) {}
    }

    fn table(slot: Slot) -> SlotTable {
        let settings = Settings { url: "redis-cluster://a:1".to_owned(), ..Settings::default() };
        let (opener, _) = Opener::new(&settings, background().unwrap()).unwrap();
        let mut table = SlotTable::new(opener, Box::new(|_| Arc::new(NoSlots)));
        table.apply(&[(slot, &node("a"))], at(0));
        table
    }

    fn node(host: &str) -> Endpoint {
        Endpoint { host: host.to_owned(), port: 1 }
    }

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn owner(table: &SlotTable, slot: Slot) -> &Endpoint {
        table.owner(slot).unwrap().endpoint().unwrap()
    }

    #[test]
    fn a_redirect_of_a_node_that_was_left_changes_nothing() {
        let slot = Slot::new(7);
        let mut table = table(slot);
        let (a, b, c) = (node("a"), node("b"), node("c"));
        assert_eq!(table.move_slot(slot, &a, &b, at(1)).moves.len(), 1);
        assert_eq!(table.move_slot(slot, &b, &c, at(2)).moves.len(), 1);
        assert!(table.move_slot(slot, &a, &b, at(3)).moves.is_empty(), "an answer that came late");
        assert_eq!((owner(&table, slot), table.moved_at(slot)), (&c, at(2)));
    }

    /// Only the node itself, not a majority, is sure that it does not have a slot.
    #[test]
    fn maps_name_no_node_that_has_just_given_its_slot_away() {
        let (slot, a, b) = (Slot::new(7), node("a"), node("b"));
        let mut table = table(slot);
        table.move_slot(slot, &a, &b, at(1_000));
        let news = |table: &SlotTable, now| table.news([(slot, &a)].into_iter(), at(now)).len();
        assert_eq!((news(&table, 2_999), news(&table, 3_000)), (0, 1));
        table.apply(&[(slot, &a)], at(3_000));
        assert_eq!(owner(&table, slot), &a);
    }

    #[test]
    fn a_node_is_left_that_has_lost_its_last_slot() {
        let (slot, a, b) = (Slot::new(7), node("a"), node("b"));
        let mut table = table(slot);
        table.server_at(&node("importing"), slot);
        let left = table.apply(&[(slot, &b)], at(1)).left;
        let left: Vec<_> = left.iter().filter_map(|server| server.endpoint()).collect();
        assert_eq!(left, [&a], "a node that never had one may get one yet");
    }
}
