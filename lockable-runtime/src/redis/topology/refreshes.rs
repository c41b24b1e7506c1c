//! Refreshes the table by the nodes' slot maps.
//!
//! See "How does `CLUSTER SLOTS` decide which node has a slot?" in DESIGN.md.

use std::iter;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinSet;

use super::map_requests::{
    MapAnswer, collect_most_of, collect_soon, request_map, request_map_anew,
};
use super::maps::{Map, undisputed};
use super::server::Server;
use super::slots::Slots;
use crate::core::backend::Fault;
use crate::core::process::clock::{boot_time, timer_on};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::fault::cluster;

/// The most masters that are asked at once: a majority of them is more than one rack.
const MAX_AT_ONCE: usize = 16;

impl Slots {
    pub(super) fn start_refresh(&self) {
        if self.pace.need() {
            drop(self.opener.timers.spawn(refresh_while_needed(Weak::clone(&self.this))));
        }
    }

    pub(super) async fn refresh_and_wait(&self) -> Result<(), Fault> {
        let mut ended = self.pace.ended.subscribe();
        let before = ended.borrow().0;
        self.start_refresh();
        let refreshed = async {
            let ended = ended.wait_for(|(count, _)| *count > before).await;
            ended.map_or(Ok(()), |ended| ended.1.clone().map_or(Ok(()), Err))
        };
        self.opener.connecting(refreshed).await
    }

    /// Asks the masters; if most do not answer, also their replicas and newly named nodes. Returns whether a slot has
    /// moved.
    async fn refresh(&self) -> Result<bool, Fault> {
        let masters = self.table.lock().masters();
        if masters.is_empty() {
            return self.refresh_by_seeds().await;
        }
        let mut maps = Vec::new();
        let mut faults = Vec::new();
        let limit = self.opener.command_deadline / 2;
        let asked: Vec<_> = masters.into_iter().take(MAX_AT_ONCE).collect();
        let mut running: JoinSet<_> =
            asked.iter().map(|master| request_map(Arc::clone(master), limit)).collect();
        let mut count = running.len();
        collect_most_of(count, &mut running, (&mut maps, &mut faults)).await;
        let has_master = !maps.is_empty();
        if maps.len() * 2 <= count {
            let others = self.others(&maps, &asked);
            let mut running = self.request_maps(others, self.opener.connect_deadline / 2);
            // Where no master answers, most of the replicas decide.
            count = running.len() + if has_master { count } else { 0 };
            collect_most_of(count, &mut running, (&mut maps, &mut faults)).await;
        }
        if maps.is_empty() {
            // All nodes may have other addresses now, which the names of the URL lead to.
            return self.refresh_by_seeds().await;
        }
        // Some that are cut off from the others may claim their slots still.
        if has_master && maps.len() * 2 <= count {
            return Err(cluster::unknown(&self.opener.server, faults));
        }
        Ok(self.learn(&maps))
    }

    /// The first query, to the nodes in the URL: one of them knows the masters, which are asked soon after.
    async fn refresh_by_seeds(&self) -> Result<bool, Fault> {
        let mut maps = Vec::new();
        let mut faults = Vec::new();
        let seeds = self.seeds.clone();
        let mut running = self.request_maps(seeds, self.opener.connect_deadline / 2);
        collect_soon(&mut running, (&mut maps, &mut faults), &self.opener.timers).await;
        if maps.is_empty() {
            return Err(cluster::unknown(&self.opener.server, faults));
        }
        Ok(self.learn(&maps))
    }

    /// The nodes that may have the slots of silent masters: those that the maps name, perhaps newly, and known
    /// replicas.
    fn others(&self, maps: &[Map], asked: &[Arc<Server>]) -> Vec<Endpoint> {
        let table = self.table.lock();
        let shards = maps.iter().flatten();
        let named = shards.flat_map(|shard| iter::once(&shard.master).chain(&shard.replicas));
        let mut others: Vec<Endpoint> = Vec::new();
        for endpoint in named.chain(table.replicas()) {
            let is_asked = asked.iter().any(|master| master.endpoint() == Some(endpoint));
            if !is_asked && !others.contains(endpoint) {
                others.push(endpoint.clone());
            }
        }
        others.truncate(MAX_AT_ONCE);
        others
    }

    fn request_maps(&self, endpoints: Vec<Endpoint>, limit: Duration) -> JoinSet<MapAnswer> {
        endpoints
            .into_iter()
            .map(|endpoint| request_map_anew(self.opener.clone(), endpoint, limit))
            .collect()
    }

    /// Takes what most maps say. The votes are counted outside of the table's lock.
    fn learn(&self, maps: &[Map]) -> bool {
        let named: Vec<_> = undisputed(maps).collect();
        let news = self.table.lock().news(named.into_iter(), boot_time());
        self.change(|table, now| {
            table.set_replicas(maps);
            table.apply(&news, now)
        });
        !news.is_empty()
    }
}

async fn refresh_while_needed(slots: Weak<Slots>) {
    loop {
        let Some(this) = slots.upgrade() else { return };
        let pause = this.pace.begin();
        timer_on(&this.opener.timers, pause).await;
        let outcome = this.refresh().await;
        let has_news = matches!(outcome, Ok(true));
        this.pace.ended.send_modify(|(count, fault)| {
            *count += 1;
            *fault = outcome.err();
        });
        if !this.pace.is_needed(has_news) {
            return;
        }
    }
}
