//! What the test has asked of the network, as plain state that every connection reads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The faults that are on. Connections are numbered in the order in which they were accepted.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// How many connections were accepted so far, which is the number of the next one.
    pub(super) accepted: usize,
    pub(super) requests: Hold,
    pub(super) replies: Hold,
    /// The replies of connections on which a command of this name has come.
    pub(super) answers_to: Option<&'static str>,
    /// Connections below this number are closed on both sides.
    pub(super) cut_below: usize,
    /// Connections below this number are closed towards the client.
    pub(super) hung_up_below: usize,
    /// Connections below this number are closed towards the client in the middle of the next reply.
    pub(super) cut_off_below: usize,
    pub(super) is_refusing: bool,
    /// Where connections go now, once it is not where they went at first.
    pub(super) upstream: Option<SocketAddr>,
    /// New connections are accepted and closed at once.
    pub(super) is_turning_away: bool,
    /// How much later than they came bytes are passed on, in either direction.
    pub(super) delay: Duration,
    /// A command that is passed on under a name that no server knows.
    pub(super) misspelt: Option<&'static str>,
    /// The ports of servers that the server names, and those that the client gets instead.
    pub(super) ports: Arc<[(String, String)]>,
    /// The proxy is being dropped.
    pub(super) is_closed: bool,
}

impl Control {
    pub(super) fn hold(&self, direction: Direction) -> Hold {
        match direction {
            Direction::Requests => self.requests,
            Direction::Replies => self.replies,
        }
    }
}

/// Which connections one direction of the traffic is held back for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Hold {
    #[default]
    None,
    All,
    /// Those below a number: the ones that were open when the hold began.
    Below(usize),
}

impl Hold {
    pub(super) fn covers(self, connection: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Below(limit) => connection < limit,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}
