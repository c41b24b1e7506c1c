//! How often a request is sent elsewhere, or again, before its fault counts.

use std::time::Duration;

use crate::backend::Fault;
use crate::backend::redis::fault::cluster;
use crate::backend::redis::reach::opener::Opener;
use crate::types::clock::{Moment, boot_time, timer_on};

/// More show that nodes name each other in a circle.
const MAX_REDIRECTS: u32 = 5;

/// It doubles up to the longest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// What became of one request so far.
pub(crate) struct Hops {
    begun: Moment,
    redirects: u32,
    pause: Duration,
}

impl Hops {
    pub(crate) fn begin() -> Self {
        Self { begun: boot_time(), redirects: 0, pause: SHORTEST_PAUSE }
    }

    /// The request goes to another node: at once for the first two times, which is what a slot on the move
    /// takes.
    ///
    /// # Errors
    /// When it has gone to too many. That fault says no more where the slot is, so it is not followed either where
    /// the request was a part of a verb.
    pub(super) async fn redirect(&mut self, fault: Fault, opener: &Opener) -> Result<(), Fault> {
        self.redirects += 1;
        match self.redirects {
            1 | 2 => Ok(()),
            3..=MAX_REDIRECTS => self.pause(fault, opener).await,
            _ => Err(cluster::circle(&fault)),
        }
    }

    /// The request goes out again after a pause, which grows.
    ///
    /// # Errors
    /// With the fault, when the command deadline has passed.
    pub(super) async fn pause(&mut self, fault: Fault, opener: &Opener) -> Result<(), Fault> {
        if boot_time().since(self.begun) >= opener.command_deadline {
            return Err(fault);
        }
        timer_on(&opener.timers, self.pause).await;
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        Ok(())
    }
}
