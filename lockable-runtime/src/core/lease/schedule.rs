//! When a lease is renewed: arithmetic alone.

use std::time::Duration;

use crate::core::process::clock::Moment;
use crate::core::types::options::Ttl;

/// A lease is renewed after a third of it, so that several tries fit into the rest.
const FIRST: u32 = 3;

/// How many tries, each waiting for its answer, would fill a lease. After the first third, rounded up, at least five
/// fit; a connection that left three unanswered is replaced, so the last two use another one.
const TRIES: u32 = 9;

/// Each connection that opens requests a check: without a pause, one that breaks at every check would be opened again
/// at once.
///
/// See "Why does a reconnect check all leases, and restore their TTL?" in DESIGN.md.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// From when on the deletion of a renewed lock is noticed at once: shorter bodies cost nothing.
///
/// See "How does client tracking detect a deleted lock?" in DESIGN.md.
const UNWATCHED: Duration = Duration::from_secs(1);

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// When a lease is due that was granted, or last renewed, by a request of that moment.
///
/// Rounded up to a grid, at most a sixteenth of the lease wide, so that the leases of a process fall due together and
/// share commands.
pub(crate) fn due(sent: Moment, ttl: Ttl) -> Moment {
    let third = sent.after(ttl.duration() / FIRST);
    third.round_up(ttl.duration() / 16)
}

/// When a lease that is granted now is looked at first, rounded up as by [`due`].
pub(crate) fn first_look(now: Moment) -> Moment {
    now.after(UNWATCHED).round_up(UNWATCHED / 8)
}

/// When a lease is looked at whose lock is changed now, after that number of changes: at once, then in pauses that grow
/// to a second, so that a client that changes a lock in a loop causes one look a second.
pub(crate) fn look(latest: Moment, looks: u32, now: Moment) -> Moment {
    let Some(doublings) = looks.checked_sub(1) else { return now };
    let pause = BETWEEN_CHECKS.saturating_mul(1 << doublings.min(4)).min(BETWEEN_LOOKS);
    now.max(latest.after(pause))
}

pub(crate) fn patience(ttl: Ttl, command_deadline: Duration) -> Duration {
    command_deadline.min(ttl.usable() / TRIES)
}

/// When an unanswered try is repeated: not at once, even if it failed at once.
pub(crate) fn retry(sent: Moment, now: Moment, ttl: Ttl, command_deadline: Duration) -> Moment {
    now.max(sent.after(patience(ttl, command_deadline)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Connected,
    /// All data of a database were deleted, perhaps another than that of the locks.
    Flushed,
}

impl Cause {
    /// Even a client that flushes a cache in a loop causes few checks.
    fn pause(self) -> Duration {
        match self {
            Self::Connected => BETWEEN_CHECKS,
            Self::Flushed => BETWEEN_LOOKS,
        }
    }
}

/// When a requested check of all leases is made; `latest` is the time of the latest one, or of the next.
///
/// It is made at once, unless there was one just before; one check serves all requests before it.
pub(crate) fn check(latest: Option<Moment>, now: Moment, cause: Cause) -> Moment {
    match latest {
        None => now,
        Some(planned) if planned > now && cause == Cause::Flushed => planned,
        Some(planned) if planned > now => planned.min(now.after(BETWEEN_CHECKS)),
        Some(latest) => now.max(latest.after(cause.pause())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ttl(millis: u64) -> Ttl {
        Ttl::new("expire", Duration::from_millis(millis)).unwrap()
    }

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn tries(sent: Moment, ttl: Ttl, deadline: Duration) -> Vec<Moment> {
        let valid_until = sent.after(ttl.usable());
        let mut next = due(sent, ttl);
        let mut tries = Vec::new();
        while next < valid_until {
            tries.push(next);
            next = retry(next, next.after(patience(ttl, deadline)), ttl, deadline);
        }
        tries
    }

    #[test]
    fn the_first_check_is_made_without_a_pause() {
        let later = |millis| at(5).after(Duration::from_millis(millis));
        let after = |latest, now| check(latest, now, Cause::Connected);
        assert_eq!(after(None, at(5)), at(5));
        assert_eq!(after(Some(at(5)), later(1)), later(100));
        assert_eq!(after(Some(later(100)), later(99)), later(100));
        assert_eq!(after(Some(later(100)), later(101)), later(200));
        assert_eq!(after(Some(later(100)), later(300)), later(300));
    }

    #[test]
    fn flushes_in_a_loop_cause_one_check_a_second() {
        let later = |millis| at(5).after(Duration::from_millis(millis));
        assert_eq!(check(None, at(5), Cause::Flushed), at(5));
        assert_eq!(check(Some(at(5)), later(1), Cause::Flushed), later(1_000));
        assert_eq!(check(Some(later(1_000)), later(2), Cause::Flushed), later(1_000));
        // A connection does not wait for it.
        assert_eq!(check(Some(later(1_000)), later(2), Cause::Connected), later(102));
    }

    #[test]
    fn leases_of_one_moment_are_looked_at_together() {
        let looks: Vec<_> =
            (0..50).map(|n| first_look(at(1 << 26).after(SECOND / 50 * n))).collect();
        let mut moments = looks.clone();
        moments.dedup();
        assert!(looks.iter().all(|look| look.since(at(1 << 26)) >= SECOND));
        assert!(looks.first().unwrap().since(at(1 << 26)) <= SECOND * 9 / 8);
        assert!(moments.len() <= 17, "{} moments", moments.len());
    }

    proptest! {
        #[test]
        fn the_first_renewal_is_at_a_third(sent in 0..u64::MAX / 2, millis in 10_u64..86_400_000) {
            let (sent, ttl) = (at(sent), ttl(millis));
            let after = due(sent, ttl).since(sent);
            prop_assert!(after >= ttl.duration() / 3);
            prop_assert!(after <= ttl.duration() / 3 + ttl.duration() / 16);
        }

        #[test]
        fn at_least_five_tries_end_within_a_lease(
            sent in 0..u64::MAX / 2,
            // Of all leases of up to a day hardly one is so short that the command deadline does not count.
            millis in prop_oneof![200_u64..10_000, 200_u64..86_400_000],
        ) {
            let (sent, ttl) = (at(sent), ttl(millis));
            let tries = tries(sent, ttl, SECOND);
            let given_up = tries.iter().filter(|tried| {
                tried.after(patience(ttl, SECOND)) <= sent.after(ttl.usable())
            });
            prop_assert!(given_up.count() >= 5);
        }

        #[test]
        fn the_shortest_leases_have_three_tries(sent in 0..u64::MAX / 2, millis in 10_u64..200) {
            prop_assert!(tries(at(sent), ttl(millis), SECOND).len() >= 3);
        }

        #[test]
        fn leases_of_one_length_fall_due_at_few_moments(
            millis in 10_u64..86_400_000,
            phases in proptest::collection::vec(0.0..1.0_f64, 200),
        ) {
            let ttl = ttl(millis);
            let third = ttl.duration() / 3;
            let mut dues: Vec<_> =
                phases.iter().map(|phase| due(at(1).after(third.mul_f64(*phase)), ttl)).collect();
            dues.sort();
            dues.dedup();
            prop_assert!(dues.len() <= 12, "{} moments", dues.len());
        }

        #[test]
        fn a_try_that_fails_fast_is_repeated_later(
            sent in 0..u64::MAX / 2,
            millis in 10_u64..86_400_000,
        ) {
            let (sent, ttl) = (at(sent), ttl(millis));
            prop_assert_eq!(retry(sent, sent, ttl, SECOND).since(sent), patience(ttl, SECOND));
        }
    }
}
