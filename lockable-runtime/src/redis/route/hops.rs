//! How often a request is redirected or repeated before its fault counts.

use std::mem;
use std::time::Duration;

use crate::core::backend::Fault;
use crate::core::process::clock::{Moment, boot_time, timer_on};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Opener;
use crate::redis::fault::cluster;

/// More show that nodes name each other in a circle.
const MAX_REDIRECTS: u32 = 5;

/// Doubles up to the longest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Hops {
    begun: Moment,
    redirects: u32,
    pause: Duration,
    has_broken: bool,
    /// The server that gets the next request, behind `ASKING`.
    asks: Option<Endpoint>,
    is_asking: bool,
}

impl Hops {
    pub(super) fn begin() -> Self {
        Self {
            begun: boot_time(),
            redirects: 0,
            pause: SHORTEST_PAUSE,
            has_broken: false,
            asks: None,
            is_asking: false,
        }
    }

    /// Where the next request goes, if not to its slot's server.
    pub(super) fn next(&mut self) -> Option<Endpoint> {
        let next = self.asks.take();
        self.is_asking = next.is_some();
        next
    }

    /// Whether the request goes to a server to which its slot only moves.
    pub(super) fn is_asking(&self) -> bool {
        self.is_asking
    }

    /// The connection broke; returns whether for the first time.
    pub(super) fn breaks(&mut self) -> bool {
        !mem::replace(&mut self.has_broken, true)
    }

    /// Sends the request to another server: at once for the first two times, which suffice for a moving slot. With a
    /// place, it goes there although the slot is not there yet.
    ///
    /// # Errors
    /// When it was redirected too often.
    pub(super) async fn redirect(
        &mut self,
        fault: Fault,
        asks: Option<Endpoint>,
        opener: &Opener,
    ) -> Result<(), Fault> {
        self.redirects += 1;
        self.asks = asks;
        match self.redirects {
            1 | 2 => Ok(()),
            3..=MAX_REDIRECTS => self.pause(fault, opener).await,
            _ => Err(cluster::circle(&fault)),
        }
    }

    /// Waits before a repetition, longer each time.
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

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::core::process::clock::tokio_time;
    use crate::core::settings::Settings;
    use crate::core::types::options::Deadlines;

    fn opener() -> Opener {
        let deadlines = Deadlines { command: Duration::from_secs(600), ..Deadlines::default() };
        let url = "redis-cluster://host".to_owned();
        let settings = Settings { url, deadlines, ..Settings::default() };
        Opener::new(&settings, Handle::current()).unwrap().0
    }

    fn fault() -> Fault {
        Fault::unavailable("MOVED")
    }

    fn are(pauses: &[u128], expected: &[u128]) {
        let fits = |(pause, of): (&u128, &u128)| (*of..*of + 2).contains(pause);
        let fit = pauses.len() == expected.len() && pauses.iter().zip(expected).all(fits);
        assert!(fit, "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_pauses_of_a_request_grow_to_a_tenth_of_a_second() {
        let (opener, mut hops, mut pauses) = (opener(), Hops::begin(), Vec::new());
        for _ in 0..8 {
            let begun = tokio_time();
            hops.pause(fault(), &opener).await.unwrap();
            pauses.push(tokio_time().since(begun).as_millis());
        }
        are(&pauses, &[5, 10, 20, 40, 80, 100, 100, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_redirected_five_times_at_most() {
        let (opener, mut hops, mut pauses) = (opener(), Hops::begin(), Vec::new());
        for _ in 0..5 {
            let begun = tokio_time();
            hops.redirect(fault(), None, &opener).await.unwrap();
            pauses.push(tokio_time().since(begun).as_millis());
        }
        are(&pauses, &[0, 0, 5, 10, 20]);
        let error = hops.redirect(fault(), None, &opener).await.unwrap_err();
        assert!(error.message.contains("redirect loop"), "{}", error.message);
    }
}
