//! Whether the server's clock shows the time of this machine.

use std::time::{Duration, SystemTime};

use ::redis::Pipeline;

use crate::findings::{Code, Finding, Severity};
use crate::operators::check::Report;
use crate::redis::wire::server::Clock;
use crate::redis::wire::session::Session;

/// A difference that people see when they compare logs.
const NOTED: Duration = Duration::from_secs(1);

/// A difference between two primaries that shortens leases, or makes fencing tokens repeat, once a slot moves.
const APART: Duration = Duration::from_millis(100);

pub(super) async fn compare(
    session: &Session<'_>,
    report: &mut Report,
) -> Result<Option<Clock>, Finding> {
    let sent = SystemTime::now();
    let replies = session.call(Pipeline::new().cmd("TIME")).await?;
    let clock = replies.first().and_then(|time| Clock::of(time, sent, SystemTime::now()));
    report.clock_difference = clock.as_ref().map(Clock::difference);
    if let Some(by) = report.clock_difference.filter(|by| *by > NOTED) {
        let message = format!("the server's clock differs by {by:.0?} from this machine's");
        report.add([Finding::new(Severity::Info, Code::ClockDiffers, message)]);
    }
    Ok(clock)
}

pub(super) fn apart<'a>(clocks: impl Iterator<Item = &'a Clock> + Clone) -> Option<Finding> {
    let ahead = clocks.clone().map(|clock| clock.least).max()?;
    let behind = clocks.map(|clock| clock.most).min()?;
    let by = Duration::from_micros(u64::try_from(ahead.saturating_sub(behind)).unwrap_or(0));
    let message =
        format!("the clocks of the primaries differ from each other by {by:.0?}, or more");
    (by > APART).then(|| Finding::new(Severity::Warning, Code::ClocksDifferBetween, message))
}

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::*;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn time(theirs: u64) -> Value {
        let part = |number: u64| Value::BulkString(number.to_string().into_bytes());
        Value::Array(vec![part(theirs / 1_000), part(theirs % 1_000 * 1_000)])
    }

    #[test]
    fn a_clock_differs_in_either_direction() {
        let compared = |theirs, ours: u64| {
            let clock = Clock::of(&time(theirs), at(ours - 10), at(ours + 10)).unwrap();
            clock.difference()
        };
        assert_eq!(compared(9_050, 9_050), Duration::ZERO);
        assert_eq!(compared(9_000, 5_000), Duration::from_secs(4));
        assert_eq!(compared(5_000, 9_000), Duration::from_secs(4));
    }

    #[test]
    fn a_reply_that_is_no_time_is_not_compared() {
        assert!(Clock::of(&Value::Nil, at(1), at(1)).is_none());
    }

    #[test]
    fn clocks_differ_by_what_no_round_trip_explains() {
        let clock =
            |theirs, sent, received| Clock::of(&time(theirs), at(sent), at(received)).unwrap();
        let found = |clocks: &[Clock]| apart(clocks.iter()).map(|found| found.message().to_owned());
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[clock(5_000, 1_000, 1_001)]), None, "one alone");
        let near = [clock(1_000, 1_000, 1_010), clock(1_090, 1_000, 1_000)];
        assert_eq!(found(&near), None);
        let slow = [clock(1_000, 1_000, 1_000), clock(1_500, 1_000, 1_500)];
        assert_eq!(found(&slow), None);
        let apart =
            [clock(1_000, 1_000, 1_000), clock(800, 1_000, 1_000), clock(1_200, 1_000, 1_010)];
        assert!(found(&apart).unwrap().contains("by 390ms"), "{:?}", found(&apart));
    }
}
