//! When a lease is renewed: arithmetic alone.

use std::time::Duration;

use crate::types::clock::Moment;
use crate::types::options::Ttl;

/// A lease is renewed when a third of it has gone by, so that several tries fit into the rest.
const FIRST: u32 = 3;

/// How many tries would fill a whole lease, each waiting for its answer. After the first third, and
/// what it is rounded up by, at least five fit; a connection that left three unanswered is replaced,
/// so the last two go over another one.
const TRIES: u32 = 9;

/// A connection that breaks at every check would otherwise be opened again without a pause, because
/// each one that opens asks for the next check.
///
/// See "Why are all leases checked when a connection opens?" in DESIGN.md.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// When a lease is due that was granted, or last renewed, by a request of that moment.
///
/// Moments are rounded up to a grid, at most a sixteenth of the lease wide, so that the leases of a
/// process fall due together and share their commands.
pub(crate) fn due(sent: Moment, ttl: Ttl) -> Moment {
    let third = sent.after(ttl.duration() / FIRST);
    third.round_up(ttl.duration() / 16)
}

/// How long a try waits for its answer before the next one is made.
pub(crate) fn patience(ttl: Ttl, command_deadline: Duration) -> Duration {
    command_deadline.min(ttl.usable() / TRIES)
}

/// When a try is repeated that brought no answer: not at once, when it failed at once.
pub(crate) fn retry(sent: Moment, now: Moment, ttl: Ttl, command_deadline: Duration) -> Moment {
    now.max(sent.after(patience(ttl, command_deadline)))
}

/// When a check of all leases is made that is asked for now; `latest` is when they were, or will be.
///
/// At once, unless they were checked just before; and one check serves all that ask before it.
pub(crate) fn check(latest: Option<Moment>, now: Moment) -> Moment {
    match latest {
        None => now,
        Some(planned) if planned > now => planned,
        Some(latest) => now.max(latest.after(BETWEEN_CHECKS)),
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

    /// The moments at which a lease is tried to be renewed, as long as nothing is answered.
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
        assert_eq!(check(None, at(5)), at(5));
        assert_eq!(check(Some(at(5)), later(1)), later(100));
        assert_eq!(check(Some(later(100)), later(99)), later(100));
        assert_eq!(check(Some(later(100)), later(101)), later(200));
        assert_eq!(check(Some(later(100)), later(300)), later(300));
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
            millis in 200_u64..86_400_000,
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
