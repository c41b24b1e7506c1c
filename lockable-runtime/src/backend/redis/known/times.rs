//! From when on a lease counts that was granted by a message: by the server's times in earlier answers.
//!
//! See "When does a handed-off lease start?" in DESIGN.md.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::types::clock::Moment;

/// The newest answer of the server with its time.
///
/// The arrival of a message is no safe beginning: it may have been under way for longer than the
/// grant lasts. But the server read its clock for an answer after the request was sent, and as much
/// time went by from there to the grant as the server's clock shows.
///
/// That is wrong where the clock was set back between the two:
/// 1. at 10:05 by the server's clock a lock is granted to an attempt, and the message is delayed;
/// 2. the clock is set back to 10:00;
/// 3. another request is answered, at 10:01 by the server's clock;
/// 4. the message arrives, and would count from four minutes after that answer, so from its arrival.
///
/// So an answer after such a step counts only for attempts that were first sent after it was known: the
/// server cannot have granted anything to them before. The others have to be claimed.
#[derive(Default)]
pub(crate) struct Times(Mutex<LastTime>);

#[derive(Clone, Copy, Default)]
struct LastTime {
    newest: Option<TimedAnswer>,
    /// Whether a connection has ended, or the subscription was opened again, since the newest answer.
    is_over: bool,
    /// When it was known last that the clock had been set back. Attempts that were first sent before may
    /// have been granted before the step.
    counts_from: Moment,
}

#[derive(Clone, Copy)]
struct TimedAnswer {
    sent: Moment,
    /// The server's time, in microseconds.
    server: u64,
    learned: Moment,
}

impl TimedAnswer {
    /// Whether a request that was sent then, and answered with that time, shows that the clock was set back.
    ///
    /// A clock may be slower than ours by one in a hundred.
    ///
    /// See "What if the server's clock is set back before a hand-off?" in DESIGN.md.
    fn shows_step(&self, sent: Moment, server: u64) -> bool {
        let passed = less_one_in_a_hundred(sent.since(self.learned));
        let least = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        sent >= self.learned && server < self.server.saturating_add(least)
    }
}

/// When a grant that came by a message began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    pub(crate) since: Moment,
    /// Only where its attempt was not sent before this.
    pub(crate) counts_from: Moment,
}

impl Times {
    /// The server answered a request that was sent then with its time in microseconds, by now.
    pub(crate) fn learn(&self, sent: Moment, server: u64, now: Moment) {
        let mut known = self.known();
        match &known.newest {
            Some(newest) if newest.shows_step(sent, server) => known.counts_from = now,
            Some(newest) if newest.server < server => {}
            // Perhaps of another server, whose clock is behind.
            Some(_) if known.is_over => known.counts_from = now,
            Some(_) => return,
            None => {}
        }
        known.newest = Some(TimedAnswer { sent, server, learned: now });
        known.is_over = false;
    }

    /// The server may be another one now. The newest answer dates no grant any more; but it still shows
    /// whether the clock was set back, because a grant from before may arrive after the next answer.
    pub(crate) fn forget(&self) {
        self.known().is_over = true;
    }

    /// From when on a grant counts that was made at that time of the server's, and received now. `None`
    /// where it would begin later than that: then the clock was set forward in between.
    pub(crate) fn began(&self, granted: u64, arrived: Moment) -> Option<Began> {
        let LastTime { newest, is_over, counts_from } = *self.known();
        let TimedAnswer { sent, server, .. } = newest.filter(|_| !is_over)?;
        let later = Duration::from_micros(granted.checked_sub(server)?);
        // A server's clock that is faster than ours by one in a hundred would count too much.
        let since = sent.after(less_one_in_a_hundred(later));
        (since <= arrived).then_some(Began { since, counts_from })
    }

    fn known(&self) -> MutexGuard<'_, LastTime> {
        // Nothing here panics between two assignments, so a panic elsewhere leaves it sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn less_one_in_a_hundred(duration: Duration) -> Duration {
    duration.saturating_sub(duration / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(micros * 1_000)
    }

    fn since(times: &Times, granted: u64, arrived: u64) -> Option<Moment> {
        times.began(granted, at(arrived)).map(|began| began.since)
    }

    fn counts_from(times: &Times) -> Moment {
        times.known().counts_from
    }

    #[test]
    fn a_grant_counts_from_the_newest_answer_on() {
        let times = Times::default();
        assert_eq!(since(&times, 5_000, 900), None);
        times.learn(at(100), 4_000, at(110));
        assert_eq!(since(&times, 4_100, 900), Some(at(199)));
        assert_eq!(since(&times, 9_000, 900), None);
        assert_eq!(since(&times, 3_999, 900), None);
        // An older answer that was late.
        times.learn(at(50), 3_950, at(120));
        assert_eq!(since(&times, 4_000, 900), Some(at(100)));
        times.forget();
        assert_eq!(since(&times, 4_000, 900), None);
    }

    #[test]
    fn answers_of_a_running_clock_count_for_all_attempts() {
        let times = Times::default();
        for second in 1..=100_u64 {
            // As slow as a clock may be.
            let (sent, server) = (second * 1_000_000, second * 990_000 + 10_000);
            times.learn(at(sent), server, at(sent + 10_000));
        }
        assert_eq!(counts_from(&times), at(0));
        assert_eq!(since(&times, 99_010_000, 200_000_000), Some(at(100_000_000)));
    }

    /// 1. The attempt is sent, and granted at the server's time of 5000.
    /// 2. The clock is set back to 1000.
    /// 3. Another request is sent and answered at 1010, which shows it.
    /// 4. The message of the grant arrives.
    #[test]
    fn an_answer_after_a_step_dates_no_earlier_grant() {
        let times = Times::default();
        times.learn(at(90), 4_000, at(100));
        let attempt_sent = at(200);
        times.learn(at(1_300), 1_010, at(1_320));
        let began = times.began(5_000, at(9_999)).unwrap();
        assert!(attempt_sent < began.counts_from);
        // One that was sent after the step was known has been granted after it.
        assert_eq!(began.counts_from, at(1_320));
        assert_eq!(since(&times, 1_110, 9_999), Some(at(1_399)));
    }

    /// The answer has a later time than the one before, but not by as much as has gone by.
    #[test]
    fn a_step_shows_after_the_clock_caught_up() {
        let times = Times::default();
        times.learn(at(0), 1_000_000, at(10));
        times.learn(at(500_010), 1_400_000, at(500_020));
        assert_eq!(counts_from(&times), at(500_020));
        // Also for the next server: grants to attempts from before the step may still arrive.
        times.forget();
        times.learn(at(600_000), 9_000_000, at(600_010));
        assert_eq!(counts_from(&times), at(500_020));
    }

    /// 1. The attempt is sent, and granted at the server's time of 5000.
    /// 2. The clock is set back to 1000, or another server takes over, whose clock is behind.
    /// 3. The connection is opened again, and the next request answered at 1010.
    /// 4. The message of the grant arrives.
    #[test]
    fn a_step_shows_over_a_new_connection_as_well() {
        let times = Times::default();
        times.learn(at(90), 4_000, at(100));
        times.forget();
        times.learn(at(1_300), 1_010, at(1_320));
        assert_eq!(counts_from(&times), at(1_320));
        // One that was under way when the former answer came may have been answered after the step.
        times.forget();
        times.learn(at(1_310), 1_005, at(1_400));
        assert_eq!(
            (since(&times, 1_005, 9_999), counts_from(&times)),
            (Some(at(1_310)), at(1_400))
        );
    }

    /// Two requests that were under way at the same time may have been answered in any order.
    #[test]
    fn answers_in_another_order_show_no_step() {
        let times = Times::default();
        times.learn(at(100), 4_000, at(200));
        times.learn(at(199), 3_999, at(300));
        assert_eq!(since(&times, 4_000, 900), Some(at(100)));
        times.learn(at(150), 4_010, at(310));
        assert_eq!((since(&times, 4_010, 900), counts_from(&times)), (Some(at(150)), at(0)));
    }
}
