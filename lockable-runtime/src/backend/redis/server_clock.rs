//! An estimate of the server's calendar time, from which fencing floors start.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{FromRedisValue, Value};

use crate::clock::Moment;

/// How often a request takes the server's time along. In one second two clocks that nobody sets
/// drift apart by about a tenth of a millisecond, the time of a round trip.
const DUE_AFTER: Duration = Duration::from_secs(1);

/// After so long without a sample the next request waits for one: drift would be some milliseconds.
const OLD_AFTER: Duration = Duration::from_secs(60);

/// So many parts of a second may two clocks that nobody sets drift apart in one: a ten-thousandth.
const DRIFT: u32 = 10_000;

/// The server's time as this machine's boot time plus an offset.
///
/// Each sample bounds the offset from both sides: the server read its clock after the request was
/// sent and before the reply came. The estimate is the upper bound, as if the request had taken no
/// time. That is right for what a request carries: its seed is used after a delay of the same kind,
/// so delays of the link cancel out, and the quickest sample makes seeds that are not ahead of the
/// server's clock when it reads them.
#[derive(Debug)]
pub(super) struct ServerClock(Mutex<Estimate>);

#[derive(Debug)]
struct Estimate {
    /// Server's microseconds since 1970 less this machine's since boot.
    offset: i64,
    sampled: Moment,
    /// When a sample was last asked for, answered or not.
    asked: Moment,
}

impl ServerClock {
    /// An estimate from the server's replies to `TIME`, each with when it was asked and answered.
    pub(super) fn start(time: &Value, sent: Moment, received: Moment) -> Option<Self> {
        let (_, highest) = bounds(time, sent, received)?;
        Some(Self(Mutex::new(Estimate { offset: highest, sampled: received, asked: sent })))
    }

    /// Takes a further reply to `TIME` into account; anything else changes nothing.
    pub(super) fn sample(&self, time: &Value, sent: Moment, received: Moment) {
        if let Some((lowest, highest)) = bounds(time, sent, received) {
            let mut estimate = self.estimate();
            // As much as the server's clock may have run ahead since, or the bound would only sink.
            let drift = micros_in(received.since(estimate.sampled) / DRIFT);
            estimate.offset = (estimate.offset + drift).clamp(lowest, highest);
            estimate.sampled = received;
        }
    }

    /// Microseconds since 1970 on the server's clock when a request of now reaches it.
    pub(super) fn micros(&self, now: Moment) -> u64 {
        micros(now).saturating_add(self.estimate().offset).unsigned_abs()
    }

    /// Whether this request is the one to take the server's time along.
    pub(super) fn take_turn(&self, now: Moment) -> bool {
        let mut estimate = self.estimate();
        let is_due = now.since(estimate.asked) >= DUE_AFTER;
        if is_due {
            estimate.asked = now;
        }
        is_due
    }

    pub(super) fn is_old(&self, now: Moment) -> bool {
        now.since(self.estimate().sampled) >= OLD_AFTER
    }

    fn estimate(&self) -> MutexGuard<'_, Estimate> {
        // Numbers are assigned one by one, so a panic elsewhere leaves them sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lowest and the highest offset that a reply to `TIME` allows.
fn bounds(time: &Value, sent: Moment, received: Moment) -> Option<(i64, i64)> {
    let (seconds, rest) = <(i64, i64)>::from_redis_value_ref(time).ok()?;
    let server = seconds.checked_mul(1_000_000)?.checked_add(rest)?;
    Some((server - micros(received), server - micros(sent)))
}

fn micros_in(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn micros(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(micros * 1_000)
    }

    fn time(seconds: u64, micros: u64) -> Value {
        let number = |number: u64| Value::BulkString(number.to_string().into_bytes());
        Value::Array(vec![number(seconds), number(micros)])
    }

    fn clock() -> ServerClock {
        ServerClock::start(&time(1_000, 0), at(100), at(300)).unwrap()
    }

    #[test]
    fn a_seed_is_right_when_it_arrives_however_slow_the_link_is() {
        // The server's clock is 1 000 s ahead of ours; a request takes 40 µs, a reply 60 000 µs.
        let arrived = |sent: u64| time(1_000, sent + 40);
        let clock = ServerClock::start(&arrived(100), at(100), at(60_140)).unwrap();
        assert_eq!(clock.micros(at(70_000)), 1_000_070_040);
    }

    #[test]
    fn the_quickest_request_counts() {
        let clock = clock();
        clock.sample(&time(1_000, 1_000), at(1_150), at(1_360));
        assert_eq!(clock.micros(at(1_150)), 1_000_001_000);
        clock.sample(&time(1_000, 9_000), at(2_100), at(9_200));
        assert_eq!(clock.micros(at(2_150)), 1_000_002_000);
    }

    #[test]
    fn a_server_clock_that_runs_faster_is_followed() {
        let clock = clock();
        // After each second the server is another 100 µs ahead, and all requests take equally long.
        for second in 1..=1_000 {
            let sent = at(100 + second * 1_000_000);
            let received = at(300 + second * 1_000_000);
            clock.sample(&time(1_000 + second, second * 100), sent, received);
            let behind = (1_000 + second) * 1_000_000 + second * 100 - clock.micros(sent);
            assert!(behind <= 1, "{behind} µs behind after {second} s");
        }
    }

    #[test]
    fn a_server_clock_that_stepped_is_followed() {
        let clock = clock();
        clock.sample(&time(900, 0), at(1_000), at(1_100));
        assert_eq!(clock.micros(at(1_000)), 900_000_000);
        clock.sample(&time(2_000, 0), at(2_000), at(2_100));
        assert_eq!(clock.micros(at(2_100)), 2_000_000_000);
    }

    #[test]
    fn an_answer_that_is_no_time_changes_nothing() {
        let clock = clock();
        clock.sample(&Value::Okay, at(1_000), at(1_100));
        assert_eq!(clock.micros(at(100)), 1_000_000_000);
        assert!(ServerClock::start(&Value::Nil, at(1), at(2)).is_none());
    }

    #[test]
    fn one_request_a_second_takes_the_time_along() {
        let clock = clock();
        let later = |seconds| Moment::from_nanos(at(100).as_nanos() + seconds * SECOND);
        assert!(!clock.take_turn(later(0)));
        assert!(clock.take_turn(later(1)));
        assert!(!clock.take_turn(later(1)) && clock.take_turn(later(2)));
    }

    #[test]
    fn a_sample_is_old_after_a_minute() {
        let later = |seconds| Moment::from_nanos(at(300).as_nanos() + seconds * SECOND);
        assert!(!clock().is_old(later(59)) && clock().is_old(later(60)));
    }
}
