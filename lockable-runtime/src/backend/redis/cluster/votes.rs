//! Which node has which slot, by what most nodes say.

use crate::backend::redis::reach::place::Place;
use crate::backend::redis::reach::shards::Shard;
use crate::types::slot::Slot;

/// What one node answered to `CLUSTER SLOTS`.
pub(super) type Map = Vec<Shard>;

/// What most of the maps say of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    Has(&'a Place),
    /// As many say one thing as another.
    Tied,
    /// No map has the slot.
    Nothing,
}

/// What most of the maps say of each slot.
pub(super) fn verdicts(maps: &[Map]) -> impl Iterator<Item = (Slot, Verdict<'_>)> {
    Slot::all().map(|slot| (slot, verdict(maps, slot)))
}

fn verdict(maps: &[Map], slot: Slot) -> Verdict<'_> {
    let named: Vec<_> = maps.iter().filter_map(|map| master(map, slot)).collect();
    let count = |place: &Place| named.iter().filter(|other| **other == place).count();
    let Some(most) = named.iter().max_by_key(|place| count(place)) else { return Verdict::Nothing };
    let is_tied = named.iter().any(|other| other != most && count(other) == count(most));
    if is_tied { Verdict::Tied } else { Verdict::Has(most) }
}

fn master(map: &[Shard], slot: Slot) -> Option<&Place> {
    map.iter().find(|shard| shard.has(slot)).map(|shard| &shard.master)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shards as `first-last:port`.
    fn map(shards: &str) -> Map {
        let shard = |text: &str| {
            let (slots, port) = text.split_once(':').unwrap();
            let (first, last) = slots.split_once('-').unwrap();
            let ranges = vec![first.parse().unwrap()..=last.parse().unwrap()];
            let master = Place { host: "h".to_owned(), port: port.parse().unwrap() };
            Shard { ranges, master, replicas: Vec::new() }
        };
        shards.split_whitespace().map(shard).collect()
    }

    fn port(maps: &[Map], slot: u16) -> Option<u16> {
        match verdict(maps, Slot::new(slot)) {
            Verdict::Has(place) => Some(place.port),
            Verdict::Tied => Some(0),
            Verdict::Nothing => None,
        }
    }

    #[test]
    fn most_maps_decide_about_each_slot() {
        let (old, new) = (map("0-99:1 100-199:2"), map("0-99:3 100-199:2"));
        let maps = [old.clone(), new.clone(), new.clone()];
        assert_eq!((port(&maps, 5), port(&maps, 150), port(&maps, 200)), (Some(3), Some(2), None));
        assert_eq!(port(&[old, new], 5), Some(0), "a tie");
        assert_eq!(port(&[], 5), None);
    }
}
