//! The channels of one server: which are subscribed to, and what changes that. It has no connection, so that a test can
//! bring the events in any order.

use std::collections::{HashMap, HashSet};

use crate::core::types::owner::Origin;
use crate::core::types::slot::Slot;

/// The channel for wake-ups of an origin about a slot's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Channel {
    pub(crate) slot: Slot,
    pub(crate) origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelChange {
    Join(Channel),
    Leave(Channel),
}

/// The channels of this process's waiters. An `L` waits until its channel is confirmed.
pub(crate) struct ChannelSet<L> {
    known: HashMap<Channel, Membership<L>>,
    /// In the order of sending: a channel may be left and joined again.
    changes: Vec<ChannelChange>,
}

enum Membership<L> {
    /// Not confirmed yet.
    Asked(Vec<L>),
    /// `is_used`: whether a call has listened since the last sweep.
    Confirmed { is_used: bool },
}

impl<L> ChannelSet<L> {
    /// Whether the channel is confirmed; marks it as used.
    pub(crate) fn is_confirmed(&mut self, channel: Channel) -> bool {
        match self.known.get_mut(&channel) {
            Some(Membership::Confirmed { is_used }) => {
                *is_used = true;
                true
            }
            Some(Membership::Asked(_)) | None => false,
        }
    }

    pub(crate) fn join(&mut self, channel: Channel, listener: L) {
        if let Some(Membership::Asked(listeners)) = self.known.get_mut(&channel) {
            return listeners.push(listener);
        }
        self.known.insert(channel, Membership::Asked(vec![listener]));
        self.changes.push(ChannelChange::Join(channel));
    }

    pub(crate) fn take_changes(&mut self) -> Vec<ChannelChange> {
        std::mem::take(&mut self.changes)
    }

    pub(crate) fn confirmed(&mut self, channel: Channel) -> Vec<L> {
        let confirmed = Membership::Confirmed { is_used: true };
        self.known.insert(channel, confirmed).map_or_else(Vec::new, Membership::listeners)
    }

    pub(crate) fn refused(&mut self, channel: Channel) -> Vec<L> {
        self.known.remove(&channel).map_or_else(Vec::new, Membership::listeners)
    }

    /// Leaves the channels to which no call has listened since the last sweep.
    pub(crate) fn sweep(&mut self) {
        let changes = &mut self.changes;
        self.known.retain(|channel, membership| {
            let Membership::Confirmed { is_used } = membership else { return true };
            let was_used = std::mem::replace(is_used, false);
            if !was_used {
                changes.push(ChannelChange::Leave(*channel));
            }
            was_used
        });
    }

    /// The connection is over: keeps only the channels with listeners, to join them on the next. Returns the slots of
    /// the confirmed ones.
    pub(crate) fn start_again(&mut self, waits: impl Fn(&L) -> bool) -> HashSet<Slot> {
        let mut lost = HashSet::new();
        self.known.retain(|channel, membership| match membership {
            Membership::Asked(listeners) => listeners.iter().any(&waits),
            Membership::Confirmed { .. } => {
                lost.insert(channel.slot);
                false
            }
        });
        self.changes = self.known.keys().copied().map(ChannelChange::Join).collect();
        lost
    }

    pub(crate) fn give_up(&mut self) -> Vec<L> {
        self.changes.clear();
        let mut waiting = Vec::new();
        self.known.retain(|_, membership| match membership {
            Membership::Asked(listeners) => {
                waiting.append(listeners);
                false
            }
            Membership::Confirmed { .. } => true,
        });
        waiting
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

impl<L> Membership<L> {
    fn listeners(self) -> Vec<L> {
        match self {
            Self::Asked(listeners) => listeners,
            Self::Confirmed { .. } => Vec::new(),
        }
    }
}

impl<L> Default for ChannelSet<L> {
    fn default() -> Self {
        Self { known: HashMap::new(), changes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::key::LockKey;

    fn channel(key: &'static str) -> Channel {
        let slot = Slot::of(&LockKey::from_static(key));
        Channel { slot, origin: Origin::draw().unwrap() }
    }

    fn confirmed(channels: &mut ChannelSet<u8>, channel: Channel) {
        channels.join(channel, 0);
        assert_eq!(channels.take_changes(), [ChannelChange::Join(channel)]);
        assert_eq!(channels.confirmed(channel), [0]);
    }

    #[test]
    fn a_channel_is_asked_for_once() {
        let (mut channels, one) = (ChannelSet::default(), channel("a"));
        assert!(!channels.is_confirmed(one));
        channels.join(one, 1);
        channels.join(one, 2);
        assert_eq!(channels.take_changes(), [ChannelChange::Join(one)]);
        channels.join(one, 3);
        assert!(channels.take_changes().is_empty() && !channels.is_confirmed(one));
        assert_eq!(channels.confirmed(one), [1, 2, 3]);
        assert!(channels.is_confirmed(one));
    }

    #[test]
    fn a_refused_channel_is_asked_for_again() {
        let (mut channels, one) = (ChannelSet::default(), channel("a"));
        channels.join(one, 1);
        channels.take_changes();
        assert_eq!(channels.refused(one), [1]);
        assert!(channels.is_empty());
        channels.join(one, 2);
        assert_eq!(channels.take_changes(), [ChannelChange::Join(one)]);
    }

    #[test]
    fn unused_channels_are_left_at_the_second_sweep() {
        let (mut channels, one, other) = (ChannelSet::default(), channel("a"), channel("b"));
        confirmed(&mut channels, one);
        confirmed(&mut channels, other);
        channels.sweep();
        assert!(channels.take_changes().is_empty());
        assert!(channels.is_confirmed(one));
        channels.sweep();
        assert_eq!(channels.take_changes(), [ChannelChange::Leave(other)]);
        channels.sweep();
        assert_eq!(channels.take_changes(), [ChannelChange::Leave(one)]);
        assert!(channels.is_empty());
    }

    /// 1. The sweep leaves the channel.
    /// 2. Before that is sent, a call listens.
    /// 3. Both are sent, in this order: the call waits for the second answer.
    #[test]
    fn a_call_that_races_with_a_sweep_listens() {
        let (mut channels, one) = (ChannelSet::default(), channel("a"));
        confirmed(&mut channels, one);
        channels.sweep();
        channels.sweep();
        assert!(!channels.is_confirmed(one));
        channels.join(one, 1);
        assert_eq!(channels.take_changes(), [ChannelChange::Leave(one), ChannelChange::Join(one)]);
        // One that is asked for is in use.
        channels.sweep();
        channels.sweep();
        assert!(channels.take_changes().is_empty());
        assert_eq!(channels.confirmed(one), [1]);
    }

    #[test]
    fn a_new_connection_joins_what_is_waited_for() {
        let (mut channels, one) = (ChannelSet::default(), channel("a"));
        let (other, gone) = (channel("b"), channel("c"));
        confirmed(&mut channels, one);
        channels.join(other, 1);
        channels.join(other, 2);
        channels.join(gone, 1);
        channels.take_changes();
        let lost = channels.start_again(|listener| *listener == 2);
        assert_eq!(lost, HashSet::from([one.slot]));
        assert!(!channels.is_confirmed(one));
        assert_eq!(channels.take_changes(), [ChannelChange::Join(other)]);
        assert_eq!(channels.give_up(), [1, 2]);
        assert!(channels.is_empty() && channels.take_changes().is_empty());
    }
}
