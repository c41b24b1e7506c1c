//! What the nodes of a URL say of their cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ::redis::{Pipeline, Value};

use super::session::open;
use crate::core::types::slot::{SLOTS, Slot};
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::shards::Shard;
use crate::redis::wire::server::Mode;
use crate::redis::wire::{self, command};

pub(super) struct Seed {
    pub(super) endpoint: Endpoint,
    pub(super) shards: Result<Vec<Shard>, Finding>,
}

pub(super) async fn slots(opener: &Opener, endpoint: &Endpoint) -> Result<Vec<Shard>, Finding> {
    let session = open(opener).await?;
    let mut pipeline = Pipeline::new();
    pipeline.cmd("HELLO").add_command(command::slots());
    let mut replies = session.call(&pipeline).await?.into_iter();
    let hello = replies.next().unwrap_or(Value::Nil);
    let reply = replies.next();
    if Mode::of(&hello) == Mode::Sentinel {
        session.elsewhere(&hello).await?.map_or(Ok(()), Err)?;
    }
    Ok(wire::slots::read(reply, endpoint, &session.target)?)
}

/// The cluster by the most frequent reply among those with the most slots covered.
pub(super) fn of_most(seeds: &[Seed]) -> Option<&[Shard]> {
    let known = seeds.iter().filter_map(|seed| seed.shards.as_deref().ok());
    let agreeing = |shards| known.clone().filter(|other| masters(other) == masters(shards)).count();
    // Of those of which there are as many, the first.
    known.clone().rev().max_by_key(|shards| (covered(shards), agreeing(shards)))
}

fn masters(shards: &[Shard]) -> BTreeMap<&Endpoint, &[RangeInclusive<u16>]> {
    shards.iter().map(|shard| (&shard.master, &shard.ranges[..])).collect()
}

pub(super) fn findings(seeds: &[Seed], shards: Option<&[Shard]>) -> Vec<Finding> {
    let mut findings: Vec<_> = seeds.iter().filter_map(|seed| silent(seed, shards)).collect();
    findings.extend(of_others(seeds, shards));
    if let Some(shards) = shards {
        findings.extend(alone(seeds, shards));
        findings.extend(uncovered(shards));
    }
    findings
}

/// A silent seed is an error if all are silent.
fn silent(seed: &Seed, shards: Option<&[Shard]>) -> Option<Finding> {
    let reason = seed.shards.as_ref().err()?.clone();
    let reason = match reason.code() {
        Code::Unreachable | Code::AddressesUnreachable => {
            let silent =
                Finding::new(Severity::Error, Code::SeedSilent, reason.message().to_owned());
            silent.advise(reason.advice.clone())
        }
        _ => reason,
    };
    let severity = if shards.is_some() { Severity::Warning } else { Severity::Error };
    Some(reason.graded(severity).at(&seed.endpoint.to_string()))
}

fn of_others(seeds: &[Seed], shards: Option<&[Shard]>) -> Option<Finding> {
    let known = endpoints(shards?);
    let is_other = |seed: &&Seed| {
        let shards = seed.shards.as_deref().unwrap_or_default();
        !shards.is_empty() && endpoints(shards).is_disjoint(&known)
    };
    let others: Vec<_> =
        seeds.iter().filter(is_other).map(|seed| seed.endpoint.to_string()).collect();
    let message =
        format!("nodes of the URL are in another cluster than the rest: {}", others.join(", "));
    (!others.is_empty()).then(|| Finding::new(Severity::Error, Code::SeedsDisagree, message))
}

fn endpoints(shards: &[Shard]) -> BTreeSet<&Endpoint> {
    shards.iter().flat_map(|shard| shard.replicas.iter().chain([&shard.master])).collect()
}

/// A host name may lead to all nodes, unless it is that of one.
fn alone(seeds: &[Seed], shards: &[Shard]) -> Option<Finding> {
    let [Seed { endpoint, .. }] = seeds else { return None };
    let endpoints = endpoints(shards);
    let is_one = endpoint.host.parse::<IpAddr>().is_ok()
        || endpoints.iter().any(|node| node.host == endpoint.host);
    let message = "the URL lists one node only: if that fails, no new process finds the others";
    (is_one && endpoints.len() > 1).then(|| Finding::new(Severity::Info, Code::OneAddress, message))
}

fn uncovered(shards: &[Shard]) -> Option<Finding> {
    let count = SLOTS.saturating_sub(covered(shards));
    let message = format!("{count} of {SLOTS} slots have no primary, and so no locks");
    (count > 0).then(|| Finding::new(Severity::Error, Code::SlotsUncovered, message))
}

fn covered(shards: &[Shard]) -> usize {
    Slot::all().filter(|slot| shards.iter().any(|shard| shard.has(*slot))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        let (host, port) = text.rsplit_once(':').unwrap();
        Endpoint { host: host.to_owned(), port: port.parse().unwrap() }
    }

    /// Shards of as many slots as each other, with the addresses of their nodes.
    fn cluster(nodes: &[&[&str]]) -> Vec<Shard> {
        let size = 16_384 / u16::try_from(nodes.len()).unwrap();
        let shard = |(number, nodes): (u16, &&[&str])| Shard {
            ranges: vec![number * size..=number * size + size - 1],
            master: endpoint(nodes[0]),
            replicas: nodes[1..].iter().map(|node| endpoint(node)).collect(),
        };
        (0..).zip(nodes).map(shard).collect()
    }

    fn seed(text: &str, shards: Vec<Shard>) -> Seed {
        Seed { endpoint: endpoint(text), shards: Ok(shards) }
    }

    fn silent_at(text: &str) -> Seed {
        let reason = Finding::new(Severity::Error, Code::Unreachable, "silent");
        Seed { endpoint: endpoint(text), shards: Err(reason) }
    }

    fn found(seeds: &[Seed]) -> Vec<(Severity, Code)> {
        let findings = findings(seeds, of_most(seeds));
        findings.iter().map(|finding| (finding.severity(), finding.code())).collect()
    }

    const TWO: &[&[&str]] = &[&["10.0.0.1:1", "10.0.0.2:2"], &["10.0.0.2:1", "10.0.0.1:2"]];

    #[test]
    fn a_seed_that_fails_warns_and_all_are_errors() {
        let silent = |severity| (severity, Code::SeedSilent);
        let seeds = [silent_at("a:1"), seed("b:1", cluster(TWO))];
        assert_eq!(found(&seeds), [silent(Severity::Warning)]);
        let findings = findings(&seeds, of_most(&seeds));
        assert_eq!(findings[0].address(), Some("a:1"));
        let all = [silent_at("a:1"), silent_at("b:1")];
        assert_eq!(found(&all), [silent(Severity::Error); 2]);
    }

    #[test]
    fn one_node_alone_is_noted() {
        let note = [(Severity::Info, Code::OneAddress)];
        assert_eq!(found(&[seed("10.0.0.9:1", cluster(TWO))]), note, "an address");
        assert_eq!(found(&[seed("nodes.example:1", cluster(TWO))]), []);
        let pair = cluster(&[&["10.0.0.1:1", "10.0.0.2:1"]]);
        assert_eq!(found(&[seed("10.0.0.1:1", pair)]), note, "its replica is another node");
        let named: &[&[&str]] = &[&["a:1"], &["b:1"]];
        assert_eq!(found(&[seed("b:7", cluster(named))]), note, "the host of a node");
        assert_eq!(found(&[seed("10.0.0.1:1", cluster(&[&["10.0.0.1:1"]]))]), [], "one node");
        assert_eq!(
            found(&[seed("10.0.0.1:1", cluster(TWO)), seed("10.0.0.2:1", cluster(TWO))]),
            []
        );
    }

    #[test]
    fn slots_without_a_master_are_counted() {
        let (mut whole, mut part) = (cluster(TWO), cluster(TWO));
        part[0].ranges = vec![8..=8_191];
        let of_most_known = [seed("a:1", part.clone()), seed("b:1", whole.clone())];
        assert_eq!(found(&of_most_known), []);
        let two_know_less = [part.clone(), part.clone(), whole.clone()].map(|it| seed("a:1", it));
        assert_eq!(found(&two_know_less), [], "most slots count before most nodes");
        let seeds = [seed("a:1", part.clone()), seed("b:1", part)];
        assert_eq!(found(&seeds), [(Severity::Error, Code::SlotsUncovered)]);
        let findings = findings(&seeds, of_most(&seeds));
        assert!(findings[0].message().starts_with("8 of 16384 slots"), "{}", findings[0]);
        whole.clear();
        assert_eq!(found(&[seed("a:1", whole)]), [(Severity::Error, Code::SlotsUncovered)]);
    }

    #[test]
    fn seeds_of_different_clusters_are_an_error() {
        let other: &[&[&str]] = &[&["10.0.0.3:1"], &["10.0.0.4:1"]];
        let seeds = [seed("a:1", cluster(TWO)), seed("c:1", cluster(other))];
        assert_eq!(found(&seeds), [(Severity::Error, Code::SeedsDisagree)]);
        // After a failover they know the same nodes.
        assert_eq!(found(&[seed("a:1", cluster(TWO)), seed("c:1", cluster(TURNED))]), []);
    }

    const TURNED: &[&[&str]] = &[&["10.0.0.2:2", "10.0.0.1:1"], &["10.0.0.1:2", "10.0.0.2:1"]];

    #[test]
    fn a_node_that_was_cut_off_is_outvoted() {
        let now = || seed("b:1", cluster(TURNED));
        assert_eq!(of_most(&[seed("a:1", cluster(TWO)), now(), now()]), Some(&cluster(TURNED)[..]));
        assert_eq!(of_most(&[seed("a:1", cluster(TWO)), now()]), Some(&cluster(TWO)[..]));
        assert_eq!(of_most(&[silent_at("a:1")]), None);
    }
}
