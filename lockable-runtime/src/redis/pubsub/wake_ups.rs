//! The subscription to the wake-ups of one server.
//!
//! See "How does a call wait in a cluster, by sharded pub/sub?" in DESIGN.md.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use ::redis::RedisResult;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Notify, oneshot};

use super::channel_set::{Channel, ChannelChange, ChannelSet};
use super::kept::{jittered, pause_after};
use crate::core::backend::{Fault, WakeUp};
use crate::core::naming::namespace::Channels;
use crate::core::process::clock::{Moment, boot_time, timer_on};
use crate::core::process::mutex::Mutex;
use crate::core::types::error::LockErrorKind;
use crate::core::types::key::LockKey;
use crate::core::types::owner::{Origin, OwnerToken};
use crate::core::types::slot::Slot;
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::fault;
use crate::redis::pubsub::push_subscription::{ChannelRequest, PushEnd, PushSubscription};

/// How often the node is pinged, and unused channels are left. A waiting call listens with each of its queries, less
/// than a second apart.
const SWEEP: Duration = Duration::from_secs(5);

/// The pause before the next connection if the node has just replied: slots that move in a row cost one connection.
const SHORT_PAUSE: Duration = Duration::from_millis(10);

/// How long a request waits for the confirmation of its channel. A later one makes its line send a query.
const PATIENCE: Duration = Duration::from_millis(800);

/// The pause after a refusal, which only an operator can mend.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// How many useless connections in a row may end with a moved slot: others may have moved meanwhile.
const MAX_UNSUBSCRIBED: u32 = 3;

/// The one subscription to a server, started by the first call that waits for a lock there. At a cluster's node it ends
/// a while after the last waiter.
pub(crate) struct WakeUps(Arc<Subscribed>);

struct Subscribed {
    opener: Opener,
    state: Mutex<Listening>,
    /// Notified when there is something to send, or the connection is over.
    changed: Arc<Notify>,
    /// Whether the server has refused what wake-ups need. Never unset.
    was_refused: AtomicBool,
}

#[derive(Default)]
struct Listening {
    channels: ChannelSet<oneshot::Sender<()>>,
    task: Option<Task>,
    number: u64,
    /// Until then no subscription is tried.
    refused_until: Option<Moment>,
    /// How many connections in a row have confirmed no channel.
    in_vain: u32,
}

/// The task that subscribes. Only the last one changes anything.
struct Task {
    number: u64,
    is_abandoned: bool,
}

impl WakeUps {
    pub(crate) fn new(opener: Opener) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Subscribed {
            opener,
            state,
            changed: Arc::default(),
            was_refused: AtomicBool::new(false),
        }))
    }

    /// Waits, for a short time, until the channel of that origin for the slot's locks is confirmed or refused.
    ///
    /// # Cancel safety
    /// A dropped caller's channel is subscribed to all the same.
    pub(crate) async fn listen(&self, slot: Slot, origin: Origin) {
        let opener = &self.0.opener;
        if let Some(answer) = self.0.find(slot, origin) {
            let patience = PATIENCE.min(opener.command_deadline / 2);
            let _over: Option<Result<(), RecvError>> = opener.within(patience, answer).await;
        }
    }

    pub(crate) fn start_listening(&self, slot: Slot, origin: Origin) {
        drop(self.0.find(slot, origin));
    }

    /// Ends the subscription to a node without slots, and has every line there send a query. The next call that listens
    /// subscribes again.
    pub(crate) fn abandon(&self) {
        let mut state = self.0.state.lock();
        let Some(task) = &mut state.task else { return };
        task.is_abandoned = true;
        drop(state.channels.give_up());
        drop(state);
        self.0.changed.notify_one();
    }
}

impl Drop for WakeUps {
    /// The task, which has a part of this for itself, ends as well.
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Subscribed {
    /// Subscribes to the channel, unless it is confirmed or was just refused; returns the answer.
    fn find(self: &Arc<Self>, slot: Slot, origin: Origin) -> Option<oneshot::Receiver<()>> {
        let channel =
            Channel { slot: if self.is_plain() { Slot::default() } else { slot }, origin };
        let mut state = self.state.lock();
        if state.channels.is_confirmed(channel) || state.is_refused_now() {
            return None;
        }
        let (listener, answer) = oneshot::channel();
        state.channels.join(channel, listener);
        if state.task.is_none() {
            state.number += 1;
            state.task = Some(Task { number: state.number, is_abandoned: false });
            let running = Arc::clone(self).run(state.number);
            // This runtime outlives the callers'.
            drop(self.opener.timers.spawn(running));
        }
        drop(state);
        self.changed.notify_one();
        Some(answer)
    }

    /// Subscribes, and again after a loss, until no call waits at this node.
    async fn run(self: Arc<Self>, number: u64) {
        loop {
            let epoch = self.opener.demotion.epoch();
            let opened = self.opener.connecting(self.open()).await;
            let (target, subscription) = match opened {
                Ok(opened) => opened,
                Err(fault) => return self.failed(number, &fault),
            };
            let serving = self.serve(number, &target.server, &subscription);
            // A server that has become a replica publishes nothing more.
            let end = epoch.unless_over(target.unless_over(serving)).await.flatten();
            let Some(end) = end.unwrap_or(Some(PushEnd::Unsubscribed)) else { return };
            drop(subscription);
            if !self.lost(number, end, &target.server) {
                return;
            }
            let pause = if end == PushEnd::Broken { pause_after(0) } else { SHORT_PAUSE };
            timer_on(&self.opener.timers, jittered(pause)).await;
            self.opener.yields().await;
            if !self.is_needed(number) {
                return;
            }
        }
    }

    async fn open(&self) -> Result<(Target, PushSubscription), Fault> {
        let login = self.opener.login().await?;
        let target = self.opener.target(&login).await?;
        let reports = self.opener.reports.clone();
        let hear = move |text: &str| {
            if let (Some(wake_up), Some(events)) = (wake_up(text), reports.events()) {
                events.on_wake_up(wake_up);
            }
        };
        let opening =
            PushSubscription::open(&target.client, self.opener.channels, &self.changed, hear);
        let opened = target.unless_over(opening).await.ok_or_else(|| no_slots(&target.server))?;
        let subscription = opened.map_err(|error| {
            target.doubt();
            fault::About::Login(target.is_given).fault(&target.server, &error)
        })?;
        Ok((target, subscription))
    }

    async fn serve(
        &self,
        number: u64,
        server: &str,
        subscription: &PushSubscription,
    ) -> Option<PushEnd> {
        let mut swept = boot_time();
        loop {
            if let Some(end) = subscription.end() {
                return Some(end);
            }
            let is_abandoned = |state: MutexGuard<'_, Listening>| {
                state.task.as_ref().is_some_and(|it| it.is_abandoned)
            };
            if self.current(number).is_some_and(is_abandoned) {
                return Some(PushEnd::Unsubscribed);
            }
            let rest = SWEEP.saturating_sub(boot_time().since(swept));
            let changes = self.changes(number, rest.is_zero())?;
            let mut requests: Vec<_> = changes.iter().map(|change| self.request(*change)).collect();
            if rest.is_zero() {
                swept = boot_time();
                requests.push(ChannelRequest::Ping);
            }
            if requests.is_empty() {
                self.opener.within(rest, self.changed.notified()).await;
                continue;
            }
            let limit = self.opener.command_deadline;
            match self.opener.within(limit, subscription.request(&requests)).await {
                Some(Ok(outcomes)) => self.answered(number, server, changes, outcomes),
                Some(Err(end)) => return Some(end),
                None => return Some(PushEnd::Broken),
            }
        }
    }

    fn request(&self, change: ChannelChange) -> ChannelRequest {
        let Opener { channels, namespace, .. } = &self.opener;
        let name = |Channel { slot, origin }| channels.of_wake_ups(namespace, origin, slot);
        match change {
            ChannelChange::Join(channel) => ChannelRequest::Join(name(channel)),
            ChannelChange::Leave(channel) => ChannelRequest::Leave(name(channel)),
        }
    }

    /// What is to be sent; `None` if the task is over, as it is without channels.
    fn changes(&self, number: u64, is_sweep: bool) -> Option<Vec<ChannelChange>> {
        let mut state = self.current(number)?;
        if is_sweep && !self.is_plain() {
            state.channels.sweep();
        }
        if is_sweep && state.ends_without_channels() {
            return None;
        }
        Some(state.channels.take_changes())
    }

    /// An outcome for each change, and one for a ping if sent. A channel that cannot be left ends with the connection.
    fn answered(
        &self,
        number: u64,
        server: &str,
        changes: Vec<ChannelChange>,
        outcomes: Vec<RedisResult<()>>,
    ) {
        let (mut late, mut is_elsewhere, mut refused) = (HashSet::new(), false, None);
        let Some(mut state) = self.current(number) else { return };
        for (change, outcome) in changes.into_iter().zip(outcomes) {
            let ChannelChange::Join(channel) = change else { continue };
            match outcome {
                Ok(()) => {
                    state.in_vain = 0;
                    let listeners = state.channels.confirmed(channel);
                    if listeners.iter().any(oneshot::Sender::is_closed) {
                        late.insert(channel.slot);
                    }
                }
                Err(error) => {
                    is_elsewhere |= fault::leads_away(&error);
                    refused = Some(fault::of(server, &error));
                    drop(state.channels.refused(channel));
                }
            }
        }
        drop(state);
        if let Some(fault) = refused {
            self.unheard(&fault);
        }
        if is_elsewhere {
            self.opener.reports.doubted();
        }
        // A request went out without it, so a wake-up may have been missed.
        if !late.is_empty() {
            self.resubscribed(&late);
        }
    }

    fn resubscribed(&self, slots: &HashSet<Slot>) {
        if let Some(events) = self.opener.reports.events() {
            events.on_resubscribed(&|slot| self.is_plain() || slots.contains(&slot));
        }
    }

    fn failed(&self, number: u64, fault: &Fault) {
        let Some(mut state) = self.current(number) else { return };
        let is_refused = fault.kind == LockErrorKind::Refused;
        let pause = if is_refused { AFTER_REFUSAL } else { pause_after(state.in_vain) };
        state.refused_until = Some(boot_time().after(jittered(pause)));
        state.in_vain += 1;
        state.task = None;
        drop(state.channels.give_up());
        drop(state);
        self.unheard(fault);
    }

    /// Reports the first fault that only an operator can mend.
    fn unheard(&self, fault: &Fault) {
        if fault.kind == LockErrorKind::Refused
            && !self.was_refused.swap(true, Ordering::Relaxed)
            && let Some(events) = self.opener.reports.events()
        {
            events.on_unheard(fault);
        }
    }

    /// The subscription is over; later messages are lost. Returns whether there may be another.
    fn lost(&self, number: u64, end: PushEnd, server: &str) -> bool {
        let Some(mut state) = self.current(number) else { return false };
        let slots = state.channels.start_again(|listener| !listener.is_closed());
        state.task = Some(Task { number, is_abandoned: false });
        let tolerated = if end == PushEnd::Broken { 0 } else { MAX_UNSUBSCRIBED };
        let is_hopeless = state.in_vain > tolerated;
        state.in_vain += 1;
        drop(state);
        if is_hopeless {
            self.failed(number, &broken(server));
        }
        self.opener.reports.doubted();
        if end == PushEnd::Broken
            && let Some(events) = self.opener.reports.events()
        {
            let concerns = |slot| self.is_plain() || slots.contains(&slot);
            events.on_broken(&fault::broke(server), &concerns);
        }
        self.resubscribed(&slots);
        !is_hopeless
    }

    /// Whether one channel has the wake-ups of all slots. It stays, so that the next waiter has it at once.
    fn is_plain(&self) -> bool {
        self.opener.channels == Channels::Plain
    }

    fn is_needed(&self, number: u64) -> bool {
        self.current(number).is_some_and(|mut state| !state.ends_without_channels())
    }

    fn current(&self, number: u64) -> Option<MutexGuard<'_, Listening>> {
        let state = self.state.lock();
        let is_last = state.task.as_ref()?.number == number;
        is_last.then_some(state)
    }
}

impl Listening {
    fn is_refused_now(&self) -> bool {
        self.task.is_none() && self.refused_until.is_some_and(|until| boot_time() < until)
    }

    /// Ends the task if there are no channels; the next call that listens starts another.
    fn ends_without_channels(&mut self) -> bool {
        let ends = self.channels.is_empty();
        if ends {
            self.channels.give_up();
            self.task = None;
        }
        ends
    }
}

fn no_slots(server: &str) -> Fault {
    Fault::unavailable(format!("{server}: the node has no slots any more"))
}

fn broken(server: &str) -> Fault {
    Fault::unavailable(format!("{server}: the connection on which wake-ups arrive broke twice"))
}

/// A wake-up as the scripts publish it: `owner token \n lock key`.
pub(super) fn wake_up(text: &str) -> Option<WakeUp> {
    let (owner, key) = text.split_once('\n')?;
    let key = LockKey::prefixed("", key).ok()?;
    Some(WakeUp { key, owner: OwnerToken::received(owner) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "0123456789abcdef.17500000000000010000000007 req-1";

    proptest! {
        #[test]
        fn a_wake_up_is_read_as_it_was_published(key in "[a-z:\n]{1,40}") {
            let read = wake_up(&format!("{OWNER}\n{key}")).unwrap();
            prop_assert_eq!((read.owner.as_ref(), read.key.as_str()), (OWNER, key.as_str()));
        }

        #[test]
        fn any_text_is_a_wake_up_or_none(text in ".{0,200}") {
            prop_assert!(wake_up(&text).is_none() || text.contains('\n'));
        }
    }
}
