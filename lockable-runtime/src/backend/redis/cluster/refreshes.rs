//! Asks the nodes which of them have which slots, one question at a time.
//!
//! See "How does a process learn which node has a slot?" in DESIGN.md.

use std::sync::Weak;

use tokio::task::JoinSet;

use super::nodes::Cluster;
use super::questions::{ask_member, ask_place, collect};
use crate::backend::Fault;
use crate::backend::redis::fault::cluster;
use crate::backend::redis::reach::place::Place;
use crate::types::clock::timer_on;

/// The most masters that are asked at once: enough for a majority that is not of one rack.
const MAX_ASKED: usize = 16;

impl Cluster {
    /// Has the nodes asked soon; waits for nothing.
    pub(super) fn refresh_soon(&self) {
        if self.pace.need() {
            drop(self.opener.timers.spawn(refresh_while_needed(Weak::clone(&self.this))));
        }
    }

    /// Has the nodes asked, and waits for the answers.
    pub(super) async fn refreshed(&self) -> Result<(), Fault> {
        let mut ended = self.pace.ended.subscribe();
        let before = ended.borrow().0;
        self.refresh_soon();
        let refreshed = async {
            let ended = ended.wait_for(|(count, _)| *count > before).await;
            ended.map_or(Ok(()), |ended| ended.1.clone().map_or(Ok(()), Err))
        };
        self.opener.connecting(refreshed).await
    }

    /// Asks the masters, or where most of them give no answer, the replicas and the nodes of the URL as well.
    async fn refresh(&self) -> Result<(), Fault> {
        let (mut maps, mut faults) = (Vec::new(), Vec::new());
        let masters = self.table().masters();
        let limit = self.opener.command_deadline / 2;
        let mut asking: JoinSet<_> =
            masters.into_iter().take(MAX_ASKED).map(|master| ask_member(master, limit)).collect();
        let count = asking.len();
        collect(&mut asking, (&mut maps, &mut faults), &self.opener.timers).await;
        if maps.len() * 2 <= count {
            // One of them may be cut off from the others.
            let limit = self.opener.connect_deadline / 2;
            let ask = |place| ask_place(self.opener.clone(), place, limit);
            let mut asking: JoinSet<_> = self.others().into_iter().map(ask).collect();
            collect(&mut asking, (&mut maps, &mut faults), &self.opener.timers).await;
        }
        if maps.is_empty() {
            return Err(cluster::unknown(&self.opener.server, faults));
        }
        self.change(|table, now| table.apply(&maps, now));
        Ok(())
    }

    /// The replicas, and the nodes of the URL.
    fn others(&self) -> Vec<Place> {
        let mut others: Vec<_> = self.opener.seeds().unwrap_or_default().to_vec();
        let table = self.table();
        let replicas: Vec<_> = table.replicas().filter(|place| !others.contains(place)).collect();
        others.extend(replicas.into_iter().take(MAX_ASKED).cloned());
        others
    }
}

/// Asks once, and again as long as calls need that.
async fn refresh_while_needed(cluster: Weak<Cluster>) {
    loop {
        let Some(this) = cluster.upgrade() else { return };
        let pause = this.pace.begin();
        timer_on(&this.opener.timers, pause).await;
        let outcome = this.refresh().await;
        this.pace.ended.send_modify(|(count, fault)| {
            *count += 1;
            *fault = outcome.err();
        });
        if !this.pace.is_needed() {
            return;
        }
    }
}
