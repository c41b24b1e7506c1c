//! What has passed through a proxy, counted.

use std::collections::BTreeMap;

use super::control::Direction;
use crate::resp::{Frames, command_name, is_push};

/// Everything that was counted, one entry a connection, in the order of acceptance.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) connections: Vec<ConnectionTraffic>,
    pub(super) is_listening: bool,
}

impl Traffic {
    pub(super) fn commands(&self, name: &str) -> u64 {
        let name = name.to_uppercase();
        self.connections.iter().filter_map(|connection| connection.commands.get(&name)).sum()
    }

    pub(super) fn holds_any(&self, direction: Direction) -> bool {
        self.connections.iter().any(|connection| connection.held(direction) > 0)
    }
}

/// What has passed on one connection.
#[derive(Debug, Default)]
pub struct ConnectionTraffic {
    is_open: bool,
    round_trips: u64,
    commands: BTreeMap<String, u64>,
    held_requests: usize,
    held_replies: usize,
    /// Commands that have come and of which the reply has not gone out.
    unanswered: u64,
    sent: Frames,
    answered: Frames,
}

impl ConnectionTraffic {
    /// Whether the proxy still carries it in one direction at least.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many round trips it took; see [`Proxy::round_trips`](super::Proxy::round_trips).
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// How many commands of each name, in upper case, have come from the client.
    pub fn commands(&self) -> &BTreeMap<String, u64> {
        &self.commands
    }

    pub(super) fn opened() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// Closing it loses what was held back, and what has come of a frame.
    pub(super) fn close(&mut self) {
        self.is_open = false;
        (self.sent, self.answered) = (Frames::default(), Frames::default());
        self.held_requests = 0;
        self.held_replies = 0;
    }

    pub(super) fn held(&self, direction: Direction) -> usize {
        match direction {
            Direction::Requests => self.held_requests,
            Direction::Replies => self.held_replies,
        }
    }

    pub(super) fn set_held(&mut self, direction: Direction, bytes: usize) {
        match direction {
            Direction::Requests => self.held_requests = bytes,
            Direction::Replies => self.held_replies = bytes,
        }
    }

    /// Counts bytes that have come from the client.
    pub(super) fn requested(&mut self, bytes: &[u8]) {
        for frame in self.sent.feed(bytes) {
            let name = command_name(&frame);
            self.round_trips += u64::from(self.unanswered == 0);
            self.unanswered += u64::from(!answers_are_messages(&name));
            *self.commands.entry(name).or_default() += 1;
        }
    }

    /// Counts bytes that go out to the client.
    pub(super) fn replied(&mut self, bytes: &[u8]) {
        let frames = self.answered.feed(bytes);
        let replies = frames.iter().filter(|frame| !is_push(frame)).count();
        self.unanswered = self.unanswered.saturating_sub(replies as u64);
    }
}

/// Subscriptions are answered by any number of messages, so there is no one reply to wait for.
fn answers_are_messages(command: &str) -> bool {
    command.ends_with("SUBSCRIBE")
}
