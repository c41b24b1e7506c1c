//! Which node has which slot, by majority.

use super::votes::most;
use crate::core::types::slot::{SLOTS, Slot};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::shards::Shard;

pub(super) type Map = Vec<Shard>;

/// The place of each slot by most of the maps, unless there is a tie.
pub(super) fn undisputed(maps: &[Map]) -> impl Iterator<Item = (Slot, &Endpoint)> {
    let tables: Vec<_> = maps.iter().map(|map| table(map)).collect();
    Slot::all().filter_map(move |slot| {
        let named = tables.iter().filter_map(|table| *table.get(slot.index())?);
        let most = most(&named.collect::<Vec<_>>())?;
        (!most.is_tied).then_some((slot, most.what))
    })
}

fn table(map: &[Shard]) -> Vec<Option<&Endpoint>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn map(shards: &str) -> Map {
        let shard = |text: &str| {
            let (slots, port) = text.split_once(':').unwrap();
            let (first, last) = slots.split_once('-').unwrap();
            let ranges = vec![first.parse().unwrap()..=last.parse().unwrap()];
            let master = Endpoint { host: "h".to_owned(), port: port.parse().unwrap() };
            Shard { ranges, master, replicas: Vec::new() }
        };
        shards.split_whitespace().map(shard).collect()
    }

    fn port(maps: &[Map], slot: u16) -> Option<u16> {
        let is_it = |(of, _): &(Slot, &Endpoint)| *of == Slot::new(slot);
        undisputed(maps).find(is_it).map(|(_, endpoint)| endpoint.port)
    }

    #[test]
    fn most_maps_decide_about_each_slot() {
        let (old, new) = (map("0-99:1 100-199:2"), map("0-99:3 100-199:2"));
        let maps = [old.clone(), new.clone(), new.clone()];
        assert_eq!((port(&maps, 5), port(&maps, 150), port(&maps, 200)), (Some(3), Some(2), None));
        assert_eq!(port(&[old, new], 5), None, "a tie");
        assert_eq!(port(&[], 5), None);
    }
}
