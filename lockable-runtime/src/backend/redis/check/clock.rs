//! Whether the server's clock shows the time of this machine.

use std::time::{Duration, SystemTime};

use ::redis::{FromRedisValue, Pipeline, Value};

use super::session::Session;
use crate::check::{Code, Finding, Report, Severity};

/// A difference that people see when they compare logs.
const NOTED: Duration = Duration::from_secs(1);

pub(super) async fn compare(session: &Session<'_>, report: &mut Report) -> Result<(), Finding> {
    let sent = SystemTime::now();
    let replies = session.call(Pipeline::new().cmd("TIME")).await?;
    let trip = sent.elapsed().unwrap_or_default();
    report.clock_difference = replies.first().and_then(|time| difference(time, sent + trip / 2));
    if let Some(by) = report.clock_difference.filter(|by| *by > NOTED) {
        let message = format!("the server's clock differs by {by:.0?} from this machine's");
        report.add([Finding::new(Severity::Info, Code::ClockDiffers, message)]);
    }
    Ok(())
}

fn difference(time: &Value, ours: SystemTime) -> Option<Duration> {
    let (seconds, micros) = <(u64, u64)>::from_redis_value_ref(time).ok()?;
    let theirs = Duration::from_secs(seconds) + Duration::from_micros(micros);
    Some(theirs.abs_diff(ours.duration_since(SystemTime::UNIX_EPOCH).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_differs_in_either_direction() {
        let compared = |theirs: u64, ours| {
            let part = |number: u64| Value::BulkString(number.to_string().into_bytes());
            let time = Value::Array(vec![part(theirs / 1_000), part(theirs % 1_000 * 1_000)]);
            difference(&time, SystemTime::UNIX_EPOCH + Duration::from_millis(ours)).unwrap()
        };
        assert_eq!(compared(9_050, 9_050), Duration::ZERO);
        assert_eq!(compared(9_000, 5_000), Duration::from_secs(4));
        assert_eq!(compared(5_000, 9_000), Duration::from_secs(4));
    }

    #[test]
    fn a_reply_that_is_no_time_is_not_compared() {
        assert_eq!(difference(&Value::Nil, SystemTime::UNIX_EPOCH), None);
    }
}
