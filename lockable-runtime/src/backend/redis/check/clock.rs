//! How long a command takes, and what time it is over there.

use std::time::{Duration, SystemTime};

use ::redis::{FromRedisValue, Pipeline, Value};

use super::Checked;
use crate::backend::redis::wire::command;
use crate::check::{Code, Finding, Report, Severity};
use crate::types::clock::boot_time;

/// So many commands are timed; an odd number has a median.
const TIMED: usize = 5;

/// A difference that people see when they compare logs.
const NOTED: Duration = Duration::from_secs(1);

pub(super) async fn measure(server: &Checked<'_>, report: &mut Report) -> Result<(), Finding> {
    let mut pipeline = Pipeline::with_capacity(1);
    pipeline.add_command(command::time());
    let (mut trips, mut clock) = (Vec::with_capacity(TIMED), None);
    for _ in 0..TIMED {
        let (sent, ours) = (boot_time(), SystemTime::now());
        let replies = server.call(&pipeline).await?;
        let trip = boot_time().since(sent);
        if trips.iter().all(|other| trip < *other) {
            // The quickest tells best what time it is.
            clock = replies.first().and_then(|time| ahead(time, ours, trip)).or(clock);
        }
        trips.push(trip);
    }
    trips.sort_unstable();
    let median = trips.get(TIMED / 2).copied().unwrap_or_default();
    report.set_pace(median, clock.map(|(by, _)| by));
    report.add(clock.and_then(differs));
    Ok(())
}

/// By how much the server's clock differs, and whether it is ahead.
fn ahead(time: &Value, sent: SystemTime, trip: Duration) -> Option<(Duration, bool)> {
    let (seconds, micros) = <(u64, u64)>::from_redis_value_ref(time).ok()?;
    let theirs = Duration::from_secs(seconds) + Duration::from_micros(micros);
    let ours = sent.duration_since(SystemTime::UNIX_EPOCH).ok()? + trip / 2;
    Some((theirs.abs_diff(ours), theirs > ours))
}

fn differs((by, is_ahead): (Duration, bool)) -> Option<Finding> {
    let way = if is_ahead { "ahead of" } else { "behind" };
    let matter = format!("the server's clock is {by:.0?} {way} this machine's");
    let advice = "nothing for the locks, which measure time by differences; \
                  let both follow the same time for the sake of the logs";
    (by > NOTED).then(|| Finding::new(Severity::Note, Code::ClockDiffers, matter, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(theirs: u64, ours: u64, trip: u64) -> (Duration, bool) {
        let part = |number: u64| Value::BulkString(number.to_string().into_bytes());
        let time = Value::Array(vec![part(theirs / 1_000), part(theirs % 1_000 * 1_000)]);
        let sent = SystemTime::UNIX_EPOCH + Duration::from_millis(ours);
        ahead(&time, sent, Duration::from_millis(trip)).unwrap()
    }

    #[test]
    fn a_clock_is_compared_with_the_middle_of_the_round_trip() {
        assert_eq!(compared(9_050, 9_000, 100), (Duration::ZERO, false));
        assert_eq!(compared(9_000, 5_000, 0), (Duration::from_secs(4), true));
        assert_eq!(compared(5_000, 9_000, 0), (Duration::from_secs(4), false));
    }

    #[test]
    fn a_difference_is_noted_with_its_direction() {
        assert_eq!(differs((NOTED, true)), None);
        let found = |is_ahead| differs((Duration::from_secs(90), is_ahead)).unwrap();
        assert_eq!(found(true).severity(), Severity::Note);
        assert!(found(true).matter().contains("90s ahead"), "{}", found(true));
        assert!(found(false).matter().contains("90s behind"), "{}", found(false));
    }

    #[test]
    fn an_answer_that_is_no_time_is_compared_with_nothing() {
        assert_eq!(ahead(&Value::Nil, SystemTime::UNIX_EPOCH, Duration::ZERO), None);
    }
}
