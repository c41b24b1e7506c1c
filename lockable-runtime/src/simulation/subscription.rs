//! The simulated subscription of a process, made again and again as `backend/redis/pubsub/grants.rs` does.

use std::collections::BTreeSet;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use super::mix::Lane;
use super::process::Process;
use super::world::answer;
use crate::backend::{Backend, Events, Grant};
use crate::types::clock::{Moment, tokio_time};
use crate::types::token::Origin;

/// The pause between two subscriptions, as in the real backend.
const PAUSE: Duration = Duration::from_millis(100);

/// The server's end of a subscription.
struct Channel {
    process: Arc<Process>,
    server: usize,
    messages: mpsc::UnboundedSender<Message>,
}

struct Message {
    arrives: Moment,
    /// The server, and its time at the grant.
    server: usize,
    granted: u64,
    grant: Grant,
}

/// Makes sure that this process hears of the grants to its attempts; answers once that is confirmed.
pub(super) async fn listen(process: &Arc<Process>, origin: Origin, events: Weak<dyn Events>) {
    let is_started = mem::replace(&mut process.subscription().is_started, true);
    if !is_started {
        drop(tokio::spawn(subscribe_always(Arc::clone(process), origin, events)));
    }
    loop {
        let mut confirmed = pin!(process.confirmed.notified());
        confirmed.as_mut().enable();
        if process.subscription().is_confirmed {
            return;
        }
        confirmed.await;
    }
}

/// Each time with an origin that is drawn then, and with those of the attempts that wait already.
async fn subscribe_always(process: Arc<Process>, origin: Origin, events: Weak<dyn Events>) {
    let mut last = None;
    while events.strong_count() > 0 {
        let is_same = mem::take(&mut process.subscription().keeps_origin);
        let current = match last {
            None => origin,
            Some(last) if is_same => last,
            Some(_) => Origin::draw().unwrap(),
        };
        process.subscription().origins.insert(current);
        let mut origins =
            events.upgrade().map_or_else(BTreeSet::new, |events| events.waiting_origins());
        origins.extend(last.into_iter().chain([current]));
        let (channels, messages) = subscribe(&process, origins).await;
        last = Some(current);
        process.world.note(|_| format!("p{} is subscribed", process.number));
        process.subscription().is_confirmed = true;
        process.confirmed.notify_waiters();
        if let Some(events) = events.upgrade() {
            events.on_resubscribed(Some(current), &|_| true);
        }
        let receiving = tokio::spawn(receive(Arc::clone(&process), messages, Weak::clone(&events)));
        process.broken.notified().await;
        // What is under way is lost.
        receiving.abort();
        drop(channels);
        process.world.note(|_| format!("p{} is not subscribed any more", process.number));
        process.subscription().is_confirmed = false;
        process.life.until(tokio_time().after(PAUSE)).await;
    }
}

async fn subscribe(
    process: &Arc<Process>,
    origins: BTreeSet<Origin>,
) -> (Vec<Arc<Channel>>, mpsc::UnboundedReceiver<Message>) {
    process.learn_primary();
    let (sender, messages) = mpsc::unbounded_channel();
    let mut channels = Vec::new();
    for server in process.servers() {
        process.reach_server(server, Lane::Background).await;
        let (process, messages) = (Arc::clone(process), sender.clone());
        let channel = Arc::new(Channel { process: Arc::clone(&process), server, messages });
        for origin in &origins {
            let weak: Weak<Channel> = Arc::downgrade(&channel);
            answer(process.world.store(server).listen(*origin, weak));
        }
        channels.push(channel);
    }
    process.reach_process(Lane::Background).await;
    (channels, messages)
}

impl Events for Channel {
    fn on_grant(&self, grant: Grant) {
        let world = &self.process.world;
        world.granted(self.server, &grant.key, grant.owner.as_ref(), grant.fence);
        world.count("grants published");
        if self.process.subscription().is_deaf || self.process.life.is_over() {
            return world.count("messages lost");
        }
        let arrives = tokio_time().after(world.message_way());
        let granted = world.servers[self.server].time();
        drop(self.messages.send(Message { arrives, server: self.server, granted, grant }));
    }
}

/// Messages arrive in their order.
async fn receive(
    process: Arc<Process>,
    mut messages: mpsc::UnboundedReceiver<Message>,
    events: Weak<dyn Events>,
) {
    while let Some(Message { arrives, server, granted, grant }) = messages.recv().await {
        process.life.until(arrives).await;
        process.world.in_any_order().await;
        let began = process.times(server).began(granted, tokio_time());
        process.world.note(|names| {
            let (number, owner) = (process.number, names.of(grant.owner.as_ref()));
            let how = if began.is_some() { "" } else { ", which is undated" };
            format!("p{number} hears of the grant of {owner}{how}")
        });
        let counts_from = began.map_or(tokio_time(), |began| began.counts_from);
        let since = began.map(|began| began.since);
        if let Some(events) = events.upgrade() {
            events.on_grant(Grant { since, counts_from, ..grant });
        }
    }
}
