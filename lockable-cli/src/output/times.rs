//! Times: short for people, exact for programs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `2026-11-22T23:20:12.345Z`, up to the last year that has four digits.
pub(crate) fn iso(moment: SystemTime) -> String {
    let last = UNIX_EPOCH + Duration::from_millis(253_402_300_799_999);
    humantime::format_rfc3339_millis(moment.clamp(UNIX_EPOCH, last)).to_string()
}

/// `2.1s`, `9m41s`, `41m`, `2h5m`, `3d4h`.
pub(crate) fn short(time: Duration) -> String {
    // What would be rounded up to 60.0 is a minute already.
    if time < Duration::from_millis(59_950) {
        return format!("{:.1}s", time.as_secs_f64());
    }
    let seconds = time.as_secs().max(60);
    let ((unit, size), (smaller, part)) = match seconds {
        ..3_600 => (("m", 60), ("s", 1)),
        3_600..86_400 => (("h", 3_600), ("m", 60)),
        _ => (("d", 86_400), ("h", 3_600)),
    };
    match (seconds / size, seconds % size / part) {
        (count @ 10.., _) | (count, 0) => format!("{count}{unit}"),
        (count, rest) => format!("{count}{unit}{rest}{smaller}"),
    }
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// How long ago that was; nothing where another machine's clock is ahead.
pub(crate) fn since(moment: SystemTime) -> Duration {
    SystemTime::now().duration_since(moment).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_iso_8601() {
        let second = Duration::from_secs(1);
        assert_eq!(iso(UNIX_EPOCH - second), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(UNIX_EPOCH + second * 951_782_400), "2000-02-29T00:00:00.000Z");
        let far = UNIX_EPOCH + Duration::from_secs(300_000_000_000);
        assert_eq!(iso(far), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_time_has_one_unit_or_two() {
        let shown = |millis| short(Duration::from_millis(millis));
        assert_eq!([shown(0), shown(2_149), shown(59_949)], ["0.0s", "2.1s", "59.9s"]);
        assert_eq!([shown(59_960), shown(581_000)], ["1m", "9m41s"]);
        assert_eq!([shown(41 * 60_000 + 9_000), shown(7_500_000)], ["41m", "2h5m"]);
        assert_eq!([shown(3_600_000), shown(273_600_000), shown(u64::MAX)][..2], ["1h", "3d4h"]);
    }
}
