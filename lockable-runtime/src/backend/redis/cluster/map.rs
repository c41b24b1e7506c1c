//! Which node has which slot, by what nodes say.

use std::collections::BTreeSet;

use ::redis::{FromRedisValue, Value};

use crate::backend::redis::reach::place::Place;
use crate::types::slot::{SLOTS, Slot};

/// What one node answered to `CLUSTER SLOTS`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotMap {
    pub(crate) ranges: Vec<Range>,
}

/// A range of slots, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) master: Place,
    pub(crate) replicas: Vec<Place>,
}

/// What most of the maps say of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    Has(&'a Place),
    /// As many say one thing as another.
    Tied,
    /// No map has the slot.
    Nothing,
}

impl SlotMap {
    /// From the answer of the node at this place; `None` where it is no such answer.
    pub(crate) fn parse(reply: &Value, asked: &Place) -> Option<Self> {
        let Value::Array(ranges) = reply else { return None };
        let ranges =
            ranges.iter().map(|range| Range::parse(range, asked)).collect::<Option<_>>()?;
        Some(Self { ranges })
    }

    /// The replicas of all masters.
    pub(crate) fn replicas(&self) -> BTreeSet<&Place> {
        self.ranges.iter().flat_map(|range| &range.replicas).collect()
    }

    fn master(&self, slot: Slot) -> Option<&Place> {
        let number = slot.number();
        let range = self.ranges.iter().find(|range| (range.first..=range.last).contains(&number));
        range.map(|range| &range.master)
    }
}

impl Range {
    fn parse(value: &Value, asked: &Place) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let [Value::Int(first), Value::Int(last), master, replicas @ ..] = parts.as_slice() else {
            return None;
        };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        let is_range = first <= last && usize::from(last) < SLOTS;
        // A replica that is named badly costs nothing but a way to ask for the map.
        let replicas = replicas.iter().filter_map(|node| place(node, asked)).collect();
        is_range.then_some(())?;
        Some(Self { first, last, master: place(master, asked)?, replicas })
    }
}

/// `[host, port, id, [name, value, …]]`. Without a host the node has the one that was asked; where its name is
/// not known (`?`), its address may be.
fn place(node: &Value, asked: &Place) -> Option<Place> {
    let Value::Array(parts) = node else { return None };
    let port = u16::from_redis_value_ref(parts.get(1)?).ok()?;
    let host = Option::<String>::from_redis_value_ref(parts.first()?).ok()?;
    let host = match host.as_deref() {
        None | Some("") => asked.host.clone(),
        Some("?") => parts.get(3).and_then(address).unwrap_or_else(|| asked.host.clone()),
        Some(host) => host.to_owned(),
    };
    Some(Place { host, port })
}

fn address(metadata: &Value) -> Option<String> {
    let pairs = Vec::<(String, String)>::from_redis_value_ref(metadata).ok()?;
    pairs.into_iter().find_map(|(name, value)| (name == "ip").then_some(value))
}

/// What most of the maps say of each slot.
pub(super) fn verdicts(maps: &[SlotMap]) -> impl Iterator<Item = (Slot, Verdict<'_>)> {
    Slot::all().map(|slot| (slot, verdict(maps, slot)))
}

fn verdict(maps: &[SlotMap], slot: Slot) -> Verdict<'_> {
    let named: Vec<_> = maps.iter().filter_map(|map| map.master(slot)).collect();
    let count = |place: &Place| named.iter().filter(|other| **other == place).count();
    let Some(most) = named.iter().max_by_key(|place| count(place)) else { return Verdict::Nothing };
    let is_tied = named.iter().any(|other| other != most && count(other) == count(most));
    if is_tied { Verdict::Tied } else { Verdict::Has(most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Place {
        Place { host: "asked".to_owned(), port }
    }

    /// Ranges as `first-last:port`.
    fn map(ranges: &str) -> SlotMap {
        let range = |text: &str| {
            let (slots, port) = text.split_once(':').unwrap();
            let (first, last) = slots.split_once('-').unwrap();
            let (first, last) = (first.parse().unwrap(), last.parse().unwrap());
            Range { first, last, master: at(port.parse().unwrap()), replicas: Vec::new() }
        };
        SlotMap { ranges: ranges.split_whitespace().map(range).collect() }
    }

    fn port(maps: &[SlotMap], slot: u16) -> Option<u16> {
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

    fn parse(reply: &str) -> Option<SlotMap> {
        SlotMap::parse(&::redis::parse_redis_value(reply.as_bytes()).unwrap(), &at(7))
    }

    #[test]
    fn nodes_are_named_in_several_ways() {
        let node =
            |host: &str| format!("*1\r\n*3\r\n:0\r\n:5\r\n*3\r\n{host}:7001\r\n$2\r\nid\r\n");
        let host = |host: &str| parse(&node(host)).unwrap().ranges[0].master.host.clone();
        assert_eq!(host("$3\r\n::1\r\n"), "::1");
        assert_eq!(host("$0\r\n\r\n"), "asked");
        assert_eq!(host("$-1\r\n"), "asked");
        let unnamed = "*1\r\n*3\r\n:0\r\n:5\r\n*4\r\n$1\r\n?\r\n:7001\r\n$2\r\nid\r\n*2\r\n$2\r\nip\r\n$3\r\n1.2\r\n";
        assert_eq!(parse(unnamed).unwrap().ranges[0].master.host, "1.2");
    }

    #[test]
    fn replicas_follow_their_master() {
        let node = |port: u16| format!("*2\r\n$1\r\nh\r\n:{port}\r\n");
        let reply = format!("*1\r\n*4\r\n:0\r\n:16383\r\n{}{}", node(1), node(2));
        let map = parse(&reply).unwrap();
        assert_eq!((map.ranges[0].master.port, map.ranges[0].last), (1, 16_383));
        assert_eq!(map.replicas().into_iter().map(|place| place.port).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn another_answer_is_no_map() {
        for reply in ["+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*3\r\n:5\r\n:0\r\n*2\r\n$1\r\nh\r\n:1\r\n"]
        {
            assert_eq!(parse(reply), None, "{reply}");
        }
        let beyond = "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n";
        assert_eq!(parse(beyond), None);
    }
}
