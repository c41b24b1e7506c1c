//! Asks the nodes which of them have which slots, one question at a time.
//!
//! See "How does a process learn which node has a slot?" in DESIGN.md.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Cluster;
use super::table::Member;
use super::votes::Map;
use crate::backend::Fault;
use crate::backend::redis::fault::cluster;
use crate::backend::redis::reach::driven::Driven;
use crate::backend::redis::reach::node::Node;
use crate::backend::redis::reach::opener::Opener;
use crate::backend::redis::reach::place::Place;
use crate::backend::redis::reach::shards::shards;
use crate::backend::redis::wire::command::{self, pipeline};
use crate::types::clock::{Moment, boot_time, timer_on};
use crate::types::slot::Slot;

/// Two questions are at least this far apart, however many calls need an answer.
const PAUSE: Duration = Duration::from_millis(100);

/// The most masters that are asked at once: enough for a majority that is not of one rack.
const MAX_ASKED: usize = 16;

/// Whether a question is under way.
#[derive(Default)]
pub(super) struct Refreshes {
    state: Mutex<State>,
    /// How many were answered or not, and what came of the last one.
    ended: watch::Sender<(u64, Option<Fault>)>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Whether an answer was needed since the last question was sent.
    is_needed: bool,
    asked: Moment,
}

impl Cluster {
    /// Has the nodes asked soon; waits for nothing.
    pub(super) fn refresh_soon(&self) {
        let mut state = self.refreshes.state();
        state.is_needed = true;
        if !state.is_running {
            state.is_running = true;
            drop(self.opener.timers.spawn(refresh_while_needed(Weak::clone(&self.this))));
        }
    }

    /// Has the nodes asked, and waits for the answers.
    pub(super) async fn refreshed(&self) -> Result<(), Fault> {
        let mut ended = self.refreshes.ended.subscribe();
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
        let masters = self.table().masters();
        let count = masters.len().min(MAX_ASKED);
        let limit = self.opener.command_deadline / 2;
        let mut asking = JoinSet::new();
        for member in masters.into_iter().take(MAX_ASKED) {
            asking.spawn(ask_member(member, limit));
        }
        let (mut maps, mut faults) = (Vec::new(), Vec::new());
        collect(&mut asking, count, &mut maps, &mut faults).await;
        if maps.len() * 2 <= count {
            let others = self.others();
            let count = others.len();
            let limit = self.opener.connect_deadline / 2;
            let mut asking = JoinSet::new();
            for place in others {
                asking.spawn(ask_place(self.opener.clone(), place, limit));
            }
            // One of them may be cut off from the others.
            collect(&mut asking, count, &mut maps, &mut faults).await;
        }
        if maps.is_empty() {
            return Err(cluster::unknown(&self.opener.server, faults));
        }
        let changes = self.table_mut().apply(&maps, boot_time());
        self.changed(&changes);
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

/// Waits until most of those that are asked have answered, or none is left.
async fn collect(
    asking: &mut JoinSet<Result<Map, Fault>>,
    count: usize,
    maps: &mut Vec<Map>,
    faults: &mut Vec<Fault>,
) {
    let enough = maps.len() + count / 2 + 1;
    while maps.len() < enough
        && let Some(asked) = asking.join_next().await
    {
        match asked {
            Ok(Ok(map)) => maps.push(map),
            Ok(Err(fault)) => faults.push(fault),
            // It was cancelled with its runtime.
            Err(_) => {}
        }
    }
}

/// Asks a master over the background's connection.
async fn ask_member(member: Arc<Member>, limit: Duration) -> Result<Map, Fault> {
    let opener = &member.connections.opener;
    let connection = member.connections.ready().await?;
    let question = pipeline([command::slots()]);
    let Some(replies) = opener.within(limit, connection.call(&question)).await else {
        connection.unanswered(limit);
        return Err(Fault::no_answer(&opener.server, limit));
    };
    let reply = replies?.pop().unwrap_or(::redis::Value::Nil);
    let map = shards(&reply, member.place());
    map.ok_or_else(|| cluster::no_map(opener, member.place(), reply))
}

/// Asks another node over a connection of the question's own, without greeting it.
async fn ask_place(opener: Opener, place: Place, limit: Duration) -> Result<Map, Fault> {
    let opener = opener.of_node(&Arc::new(Node::new(place.clone(), Slot::default())));
    let asked = async {
        let target = opener.target(&opener.login().await?).await?;
        let failed = |error| cluster::not_let_in(&target, &error);
        let mut driven = Driven::open(&target.client).await.map_err(failed)?;
        let reply = driven.commands.send_packed_command(&command::slots()).await.map_err(failed)?;
        shards(&reply, &place).ok_or_else(|| cluster::no_map(&opener, &place, reply))
    };
    let answer = opener.within(limit, asked).await;
    answer.unwrap_or_else(|| Err(Fault::no_answer(&opener.server, limit)))
}

/// Asks once, and again as long as calls need that.
async fn refresh_while_needed(cluster: Weak<Cluster>) {
    loop {
        let Some(this) = cluster.upgrade() else { return };
        let pause = this.refreshes.begin();
        timer_on(&this.opener.timers, pause).await;
        let outcome = this.refresh().await;
        this.refreshes.ended.send_modify(|(count, fault)| {
            *count += 1;
            *fault = outcome.err();
        });
        if !this.refreshes.is_needed() {
            return;
        }
    }
}

impl Refreshes {
    /// The next question is about to be sent, after this pause.
    fn begin(&self) -> Duration {
        let mut state = self.state();
        let now = boot_time();
        let pause = if state.asked == Moment::default() {
            Duration::ZERO
        } else {
            PAUSE.saturating_sub(now.since(state.asked))
        };
        (state.is_needed, state.asked) = (false, now.after(pause));
        pause
    }

    /// Whether an answer was needed since; if not, the task that asks has ended.
    fn is_needed(&self) -> bool {
        let mut state = self.state();
        state.is_running = state.is_needed;
        state.is_running
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a few assignments, so a panic elsewhere leaves it sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
