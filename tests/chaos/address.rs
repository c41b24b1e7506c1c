//! One server behind an address, and where failovers are drawn a second one that can take its place.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use lockable_tests::{Server, clock};

use crate::nemesis::Kind;
use crate::settings::Topology;

#[derive(Debug)]
pub(crate) struct Address {
    servers: Vec<Server>,
    /// The place of the one that is the primary.
    primary: AtomicUsize,
    /// How far the clock of each is ahead of the machine's, in milliseconds.
    clocks: [AtomicI64; 2],
    /// The most that any has been ahead.
    highest: AtomicI64,
}

impl Address {
    pub(crate) fn start(topology: Topology, kinds: &[Kind]) -> Self {
        let builder =
            || if clock::can_be_set() { Server::builder().clock() } else { Server::builder() };
        let mut servers = if topology == Topology::Aof {
            // What was written outlives the server's process, whatever the disk has of it.
            vec![builder().config("appendonly", "yes").config("appendfsync", "no").start()]
        } else {
            vec![builder().start()]
        };
        if kinds.contains(&Kind::FailoverAtAddress) {
            let standby = builder().start();
            standby.admin().follow(servers[0].addr());
            servers.push(standby);
        }
        let (primary, clocks, highest) = Default::default();
        Self { servers, primary, clocks, highest }
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter()
    }

    pub(crate) fn primary(&self) -> &Server {
        &self.servers[self.primary.load(Ordering::SeqCst)]
    }

    pub(crate) fn standby(&self) -> &Server {
        &self.servers[1 - self.primary.load(Ordering::SeqCst)]
    }

    /// The standby is the primary from now on.
    pub(crate) fn swap(&self) {
        self.primary.fetch_xor(1, Ordering::SeqCst);
    }

    /// Sets the primary's clock forward, or back where that is less than zero.
    pub(crate) fn step_clock(&self, millis: i64) {
        let place = self.primary.load(Ordering::SeqCst);
        self.set_clock(place, self.clocks[place].load(Ordering::SeqCst) + millis);
    }

    /// The primary's clock is not behind any that tokens were counted by: a server that has lost its counters counts
    /// by its clock alone.
    pub(crate) fn catch_up(&self) {
        let place = self.primary.load(Ordering::SeqCst);
        self.set_clock(place, self.highest.load(Ordering::SeqCst));
    }

    /// The same for the standby, and as much more.
    pub(crate) fn advance_standby(&self, by: Duration) {
        let ahead = self.highest.load(Ordering::SeqCst) + millis(by);
        self.set_clock(1 - self.primary.load(Ordering::SeqCst), ahead);
    }

    /// How far the primary's clock is behind the one that was ahead most.
    pub(crate) fn behind(&self) -> Duration {
        let now = self.clocks[self.primary.load(Ordering::SeqCst)].load(Ordering::SeqCst);
        Duration::from_millis((self.highest.load(Ordering::SeqCst) - now).unsigned_abs())
    }

    fn set_clock(&self, place: usize, ahead: i64) {
        if !clock::can_be_set() {
            return;
        }
        self.clocks[place].store(ahead, Ordering::SeqCst);
        self.highest.fetch_max(ahead, Ordering::SeqCst);
        let distance = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 {
            self.servers[place].set_clock_back(distance);
        } else {
            self.servers[place].set_clock_forward(distance);
        }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).expect("it is short")
}
