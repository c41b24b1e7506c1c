//! The simulated subscription of a process, renewed as `redis/pubsub/wake_ups.rs` does.

use std::mem;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use super::keys::lock_key;
use super::mix::ConnectionKind;
use super::process::Process;
use crate::core::backend::{Environment as _, Events, WakeUp};
use crate::core::process::clock::{Moment, tokio_time};
use crate::core::types::owner::{Origin, OwnerToken};

/// As in the real backend.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a request waits for the subscription, as in the real backend.
pub(super) const PATIENCE: Duration = Duration::from_millis(800);

/// The server's end.
struct Channel {
    process: Arc<Process>,
    messages: mpsc::UnboundedSender<Message>,
}

struct Message {
    arrives: Moment,
    wake_up: WakeUp,
}

/// Returns once the subscription to the process's wake-ups is confirmed.
pub(super) async fn listen(process: &Arc<Process>) {
    let Some((origin, events)) = process.events.get() else { return };
    if !mem::replace(&mut process.subscription().is_started, true) {
        drop(tokio::spawn(subscribe_always(Arc::clone(process), *origin, Weak::clone(events))));
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

async fn subscribe_always(process: Arc<Process>, origin: Origin, events: Weak<dyn Events>) {
    while events.strong_count() > 0 {
        let (channels, messages) = subscribe(&process, origin).await;
        process.world.note(|_| format!("p{} is subscribed", process.number));
        process.subscription().is_confirmed = true;
        process.confirmed.notify_waiters();
        if let Some(events) = events.upgrade() {
            events.on_resubscribed(&|_| true);
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
    origin: Origin,
) -> (Vec<Arc<Channel>>, mpsc::UnboundedReceiver<Message>) {
    process.learn_primary();
    let (sender, messages) = mpsc::unbounded_channel();
    let mut channels = Vec::new();
    for server in process.servers() {
        process.reach_server(server, ConnectionKind::Background).await;
        let (process, messages) = (Arc::clone(process), sender.clone());
        let channel = Arc::new(Channel { process: Arc::clone(&process), messages });
        let weak: Weak<Channel> = Arc::downgrade(&channel);
        process.world.store(server).report_to(origin, weak);
        channels.push(channel);
    }
    process.reach_process(ConnectionKind::Background).await;
    (channels, messages)
}

impl Events for Channel {
    fn on_wake_up(&self, wake_up: WakeUp) {
        let world = &self.process.world;
        world.count("wake-ups published");
        if self.process.subscription().is_deaf || self.process.life.is_over() {
            return world.count("wake-ups lost");
        }
        for _ in 0..world.copies_of_message() {
            let arrives = tokio_time().after(world.message_way());
            drop(self.messages.send(Message { arrives, wake_up: wake_up.clone() }));
        }
    }
}

async fn receive(
    process: Arc<Process>,
    mut messages: mpsc::UnboundedReceiver<Message>,
    events: Weak<dyn Events>,
) {
    while let Some(Message { arrives, wake_up }) = messages.recv().await {
        process.life.until(arrives).await;
        process.world.in_any_order().await;
        process.world.note(|names| {
            let (number, owner) = (process.number, names.of(wake_up.owner.as_ref()));
            format!("p{number} receives the wake-up of {owner}")
        });
        if let Some(events) = events.upgrade() {
            events.on_wake_up(wake_up);
        }
    }
}

/// For the owner of a lock, or for one of its waiters.
pub(super) fn forge(process: &Process, key: &'static str) {
    let world = &process.world;
    let owners: Vec<_> = world.owner(key).into_iter().chain(world.queue(key)).collect();
    if owners.is_empty() {
        return;
    }
    let at = world.roll(|dice| dice.below(owners.len() as u64));
    let owner = OwnerToken::received(&owners[usize::try_from(at).unwrap()]);
    world.count("wake-ups forged");
    world.note(|names| {
        format!("p{} receives a forged wake-up of {}", process.number, names.of(owner.as_ref()))
    });
    if let Some(events) = process.events() {
        events.on_wake_up(WakeUp { key: lock_key(key), owner });
    }
}
