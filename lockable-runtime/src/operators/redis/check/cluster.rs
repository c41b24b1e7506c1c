//! The check of a cluster: every node that its seeds name.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::clock;
use super::examination::{Aim, examine};
use super::seeds::{self, Seed};
use super::session::open;
use crate::core::types::slot::Slot;
use crate::findings::{Finding, Severity};
use crate::operators::check::Report;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::node::Node;
use crate::redis::connect::opener::Opener;
use crate::redis::connect::shards::Shard;
use crate::redis::wire::server::Clock;

const AT_ONCE: usize = 8;

/// Examines every master as a server is examined alone, and connects to every replica.
///
/// See "What does the check examine at Sentinels and in a cluster?" in DESIGN.md.
pub(super) async fn check(opener: &Opener, aim: &Aim, seeds: &[Endpoint]) -> Report {
    let mut report = Report::new(&opener.server);
    let ask = |endpoint: Endpoint| {
        let opener = of_node(opener, &endpoint, Slot::default());
        async move { Seed { shards: seeds::slots(&opener, &endpoint).await, endpoint } }
    };
    let seeds = each(seeds.iter().cloned().map(ask).collect()).await;
    let shards = seeds::of_most(&seeds);
    report.add(seeds::findings(&seeds, shards));
    let shards = shards.unwrap_or_default();
    let masters: Vec<_> = shards.iter().map(|shard| master(opener, aim, shard)).collect();
    summarize(each(masters).await, &mut report);
    let replicas: Vec<_> = shards.iter().flat_map(|shard| replicas(opener, shard)).collect();
    report.add(each(replicas).await.into_iter().flatten());
    report
}

fn of_node(opener: &Opener, endpoint: &Endpoint, slot: Slot) -> Opener {
    opener.of_node(&Arc::new(Node::new(endpoint.clone(), slot)))
}

struct Examined {
    endpoint: Endpoint,
    report: Report,
    clock: Option<Clock>,
}

fn master(opener: &Opener, aim: &Aim, shard: &Shard) -> impl Future<Output = Examined> + use<> {
    let shard = shard.clone();
    let aim = aim.clone();
    let opener = of_node(opener, &shard.master, first(&shard));
    async move {
        let mut report = Report::new(&opener.server);
        let clock = examine(&opener, &aim, Some(&shard), &mut report).await;
        Examined { endpoint: shard.master, report, clock }
    }
}

/// Each is connected to, because it may be promoted.
fn replicas(opener: &Opener, shard: &Shard) -> Vec<impl Future<Output = Option<Finding>> + use<>> {
    let reached = |endpoint: &Endpoint| {
        let opener = of_node(opener, endpoint, first(shard));
        let name = endpoint.to_string();
        async move {
            let unreached = open(&opener).await.err()?;
            Some(unreached.graded(Severity::Warning).at(&name))
        }
    };
    shard.replicas.iter().map(reached).collect()
}

fn first(shard: &Shard) -> Slot {
    shard.slots().next().unwrap_or_default()
}

fn summarize(masters: Vec<Examined>, report: &mut Report) {
    let names: BTreeSet<_> = masters.iter().filter_map(|one| one.report.server()).collect();
    let names: Vec<_> = names.into_iter().collect();
    report.server = (!names.is_empty()).then(|| names.join(", "));
    report.clock_difference = masters.iter().filter_map(|one| one.report.clock_difference).max();
    report.add(clock::apart(masters.iter().filter_map(|one| one.clock.as_ref())));
    for one in masters {
        report.take_in(one.report, &one.endpoint.to_string());
    }
}

pub(super) async fn each<F>(futures: Vec<F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let started = futures.into_iter().map(|future| {
        let permits = Arc::clone(&permits);
        tokio::spawn(async move {
            let _permit = permits.acquire().await;
            future.await
        })
    });
    let started: Vec<_> = started.collect();
    let mut outputs = Vec::with_capacity(started.len());
    for one in started {
        // One that was cancelled has none.
        outputs.extend(one.await);
    }
    outputs
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn at_most_eight_nodes_are_asked_at_a_time() {
        let (asked, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |number: usize| {
            let (asked, most) = (Arc::clone(&asked), Arc::clone(&most));
            async move {
                most.fetch_max(asked.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                asked.fetch_sub(1, Ordering::Relaxed);
                number
            }
        };
        let answers = each((0..50).map(ask).collect()).await;
        assert_eq!(answers, (0..50).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::Relaxed), AT_ONCE);
    }

    #[test]
    fn the_report_of_a_cluster_has_the_greatest_difference_of_the_clocks() {
        let examined = |port, millis: Option<u64>| {
            let mut report = Report::new("redis-cluster://host");
            report.server = Some(format!("redis 7.0.{port}"));
            report.clock_difference = millis.map(Duration::from_millis);
            Examined { endpoint: Endpoint { host: "host".to_owned(), port }, report, clock: None }
        };
        let mut report = Report::new("redis-cluster://host");
        let masters = [(3, Some(20)), (1, Some(70)), (2, None), (1, Some(50))];
        summarize(masters.map(|(port, by)| examined(port, by)).into(), &mut report);
        assert_eq!(report.clock_difference(), Some(Duration::from_millis(70)));
        assert_eq!(report.server(), Some("redis 7.0.1, redis 7.0.2, redis 7.0.3"));
    }
}
