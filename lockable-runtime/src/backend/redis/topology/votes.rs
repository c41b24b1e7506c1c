//! Which node has which slot, by what most nodes say.

use crate::backend::redis::reach::place::Place;
use crate::backend::redis::reach::shards::Shard;
use crate::types::slot::{SLOTS, Slot};

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
    let tables: Vec<_> = maps.iter().map(|map| table(map)).collect();
    Slot::all().map(move |slot| {
        let named = tables.iter().filter_map(|table| *table.get(slot.index())?);
        (slot, verdict(&named.collect::<Vec<_>>()))
    })
}

/// The master of each slot.
fn table(map: &[Shard]) -> Vec<Option<&Place>> {
    let mut table = vec![None; SLOTS];
    for shard in map {
        for slot in shard.slots() {
            if let Some(master) = table.get_mut(slot.index()) {
                *master = Some(&shard.master);
            }
        }
    }
    table
}

fn verdict<'a>(named: &[&'a Place]) -> Verdict<'a> {
    let [first, others @ ..] = named else { return Verdict::Nothing };
    if others.iter().all(|other| other == first) {
        return Verdict::Has(first);
    }
    let count = |place: &Place| named.iter().filter(|other| **other == place).count();
    let Some(most) = named.iter().max_by_key(|place| count(place)) else { return Verdict::Nothing };
    let is_tied = named.iter().any(|other| other != most && count(other) == count(most));
    if is_tied { Verdict::Tied } else { Verdict::Has(most) }
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

    fn port(maps: &[Map], slot: usize) -> Option<u16> {
        match verdicts(maps).nth(slot).unwrap().1 {
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
