use proptest::prelude::*;

use super::*;
use crate::core::types::error::LockErrorKind;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;

fn release(known: Known) -> PendingRelease {
    let attempt = Attempt::drawn(LockKey::from_static("k"), Ttl::DEFAULT);
    PendingRelease::new(Arc::new(attempt), known)
}

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn no_answer() -> Result<Release, Fault> {
    Err(Fault::new(LockErrorKind::Unavailable, "no answer"))
}

const END: u64 = 11_000;

#[test]
fn a_granted_lock_that_is_gone_is_reported() {
    let gone = |outcome| release(Known::Granted).answered(&Ok(outcome), at(0), at(END));
    assert_eq!(gone(Release::Absent), Next::WasGone);
    assert_eq!(gone(Release::Taken), Next::WasGone);
    assert_eq!(gone(Release::Released), Next::Done);
}

#[test]
fn after_an_unanswered_release_an_absent_lock_is_done() {
    let mut release = release(Known::Granted);
    assert_eq!(release.answered(&no_answer(), at(0), at(END)), Next::Again(at(10)));
    assert_eq!(release.answered(&Ok(Release::Absent), at(10), at(END)), Next::Done);
}

#[test]
fn nothing_found_proves_nothing_while_the_request_may_land() {
    let mut release = release(Known::Unknown);
    assert_eq!(release.answered(&Ok(Release::Absent), at(0), at(END)), Next::Again(at(10)));
    assert_eq!(release.answered(&Ok(Release::Taken), at(10), at(END)), Next::Again(at(30)));
    assert_eq!(release.answered(&Ok(Release::Released), at(30), at(END)), Next::Done);
}

#[test]
fn a_release_deferred_twice_is_as_careful_as_both() {
    let mut release = release(Known::Granted);
    release.merge(Known::Unknown);
    release.merge(Known::Releasing);
    assert!(matches!(release.answered(&Ok(Release::Absent), at(0), at(END)), Next::Again(_)));
}

#[test]
fn an_awaited_answer_ends_the_doubt() {
    let mut release = release(Known::Unknown);
    release.known = Known::Granted;
    let next = release.answered(&Ok(Release::Absent), at(0), at(END));
    assert_eq!(next, Next::WasGone);
}

/// Tries until the end; returns when the tries were, in milliseconds, and the outcome.
fn run(
    mut release: PendingRelease,
    mut outcomes: impl FnMut() -> Result<Release, Fault>,
) -> (Vec<u64>, Next) {
    let (mut now, mut tries) = (0, Vec::new());
    loop {
        tries.push(now);
        match release.answered(&outcomes(), at(now), at(END)) {
            Next::Again(moment) => now = moment.as_nanos() / 1_000_000,
            end => return (tries, end),
        }
    }
}

#[test]
fn a_dead_server_is_retried_until_the_leases_end() {
    let (tries, end) = run(release(Known::Granted), no_answer);
    assert_eq!(end, Next::Abandoned);
    assert_eq!(tries.get(..8), Some(&[0, 10, 30, 70, 150, 310, 630, 1_270][..]));
    assert_eq!((tries.len(), tries.last()), (18, Some(&END)));
}

proptest! {
    #[test]
    fn every_release_ends_and_none_too_early(
        known in prop_oneof![Just(Known::Granted), Just(Known::Releasing), Just(Known::Unknown)],
        answers in proptest::collection::vec(0_u8..4, 40),
    ) {
        let mut answers = answers.into_iter().cycle();
        let mut last = 0;
        let (tries, end) = run(release(known), || {
            last = answers.next().unwrap_or(0);
            match last {
                0 => Ok(Release::Absent),
                1 => Ok(Release::Taken),
                2 => Ok(Release::Released),
                _ => no_answer(),
            }
        });
        let latest = tries.last().copied();
        prop_assert!(tries.is_sorted() && latest <= Some(END));
        match end {
            Next::Done if known == Known::Unknown => prop_assert!(last == 2 || latest == Some(END)),
            Next::WasGone => prop_assert!(known == Known::Granted && tries.len() == 1),
            Next::Abandoned => prop_assert!(last == 3 && latest == Some(END)),
            Next::Done => prop_assert!(last < 3),
            Next::Again(_) => unreachable!("is no end"),
        }
    }
}
