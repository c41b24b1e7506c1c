//! The shards of a cluster, by a reply to `CLUSTER SLOTS`.

use std::ops::RangeInclusive;

use ::redis::{FromRedisValue, Value};

use super::endpoint::Endpoint;
use crate::core::types::slot::{COUNT, Slot};

/// A master with slots, and its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) ranges: Vec<RangeInclusive<u16>>,
    pub(crate) master: Endpoint,
    pub(crate) replicas: Vec<Endpoint>,
}

impl Shard {
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.ranges.iter().cloned().flatten().map(Slot::new)
    }

    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.ranges.iter().any(|range| range.contains(&slot.number()))
    }
}

/// The shards in a reply of the node at `asked`; `None` if it is malformed.
pub(crate) fn shards(reply: &Value, asked: &Endpoint) -> Option<Vec<Shard>> {
    let entries = Vec::<Vec<Value>>::from_redis_value_ref(reply).ok()?;
    let mut shards = Vec::<Shard>::new();
    for entry in entries {
        let [first, last, master, replicas @ ..] = &entry[..] else { return None };
        let slot = |value| number(value).filter(|slot| *slot < COUNT);
        let range = slot(first)?..=slot(last)?;
        let master = endpoint(master, asked)?;
        if !master.has_port() {
            // The others have forgotten where it is.
            continue;
        }
        if let Some(shard) = shards.iter_mut().find(|shard| shard.master == master) {
            shard.ranges.push(range);
            continue;
        }
        let replicas = replicas.iter().map(|replica| endpoint(replica, asked));
        let mut replicas = replicas.collect::<Option<Vec<_>>>()?;
        replicas.retain(Endpoint::has_port);
        shards.push(Shard { ranges: vec![range], master, replicas });
    }
    Some(shards)
}

/// `[host, port, id, [name, value, …]]`. A node without a host has that of the replying node; one whose name is unknown
/// (`?`) may have an address.
fn endpoint(node: &Value, asked: &Endpoint) -> Option<Endpoint> {
    let node = Vec::<Value>::from_redis_value_ref(node).ok()?;
    let [host, port, rest @ ..] = &node[..] else { return None };
    let host = Option::<String>::from_redis_value_ref(host).ok()?;
    let host = match host.as_deref() {
        None | Some("") => None,
        Some("?") => rest.get(1).and_then(address),
        Some(_) => host,
    };
    let port = number(port)?;
    Some(Endpoint { host: host.unwrap_or_else(|| asked.host.clone()), port })
}

/// The client library would truncate it.
fn number(value: &Value) -> Option<u16> {
    let Value::Int(number) = value else { return None };
    u16::try_from(*number).ok()
}

fn address(metadata: &Value) -> Option<String> {
    let pairs = Vec::<(String, String)>::from_redis_value_ref(metadata).ok()?;
    pairs.into_iter().find_map(|(name, value)| (name == "ip" && !value.is_empty()).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Endpoint {
        Endpoint { host: host.to_owned(), port }
    }

    fn parsed(reply: &str) -> Option<Vec<Shard>> {
        let reply = ::redis::parse_redis_value(reply.as_bytes()).unwrap();
        shards(&reply, &at("asked", 7000))
    }

    fn node(host: &str, port: u16) -> String {
        let host = match host {
            "nil" => "$-1".to_owned(),
            host => format!("${}\r\n{host}", host.len()),
        };
        format!("*4\r\n{host}\r\n:{port}\r\n$2\r\nid\r\n*0\r\n")
    }

    fn entry(first: u16, last: u16, nodes: &[String]) -> String {
        format!("*{}\r\n:{first}\r\n:{last}\r\n{}", 2 + nodes.len(), nodes.concat())
    }

    #[test]
    fn the_ranges_of_a_master_are_one_shard() {
        let (a, b, c) = (node("a", 1), node("b", 2), node("::1", 3));
        let entries =
            [entry(0, 5, &[a.clone(), c.clone()]), entry(6, 9, &[b]), entry(10, 16_383, &[a, c])];
        let found = parsed(&format!("*3\r\n{}", entries.concat())).unwrap();
        let [one, other] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&one.master, &one.replicas[..]), (&at("a", 1), &[at("::1", 3)][..]));
        assert_eq!(one.ranges, [0..=5, 10..=16_383]);
        assert!(one.has(Slot::new(16_383)) && !one.has(Slot::new(6)) && other.has(Slot::new(6)));
        assert_eq!((other.slots().count(), other.replicas.len()), (4, 0));
    }

    #[test]
    fn a_node_without_a_host_is_where_was_asked() {
        for host in ["", "?", "nil"] {
            let found = parsed(&format!("*1\r\n{}", entry(0, 1, &[node(host, 7001)]))).unwrap();
            assert_eq!(found[0].master, at("asked", 7001), "{host}");
        }
        let empty = "*4\r\n$1\r\n?\r\n:7001\r\n$2\r\nid\r\n*2\r\n$2\r\nip\r\n$0\r\n\r\n";
        let found = parsed(&format!("*1\r\n{}", entry(0, 1, &[empty.to_owned()]))).unwrap();
        assert_eq!(found[0].master, at("asked", 7001));
    }

    /// Other nodes name a node so that was reset.
    #[test]
    fn a_node_without_an_address_has_no_slots() {
        let entries = [entry(0, 1, &[node("", 0)]), entry(2, 3, &[node("a", 1), node("", 0)])];
        let found = parsed(&format!("*2\r\n{}", entries.concat())).unwrap();
        assert_eq!((found.len(), found[0].replicas.len()), (1, 0));
        assert_eq!(found[0].ranges, [2..=3]);
    }

    #[test]
    fn another_reply_has_no_shards() {
        assert_eq!(parsed("*0\r\n"), Some(Vec::new()));
        for reply in ["+OK\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n:1\r\n:2\r\n", "-ERR no\r\n"] {
            assert_eq!(parsed(reply), None, "{reply}");
        }
        let without_port = "*1\r\n*3\r\n:1\r\n:2\r\n*1\r\n$1\r\na\r\n";
        assert_eq!(parsed(without_port), None);
        assert_eq!(parsed(&format!("*1\r\n{}", entry(0, 1, &[":1\r\n".to_owned()]))), None);
    }
}
