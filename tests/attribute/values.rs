//! The least and the greatest value of each option that takes an expression, as an operator sets it.

use std::time::Duration;

use lockable_runtime::{LockError, LockErrorKind, LockRequest, Locker, distributed_lock};

use crate::support::{LEASE, locker};

/// Half of the milliseconds that Redis can count.
const LONGEST: Duration = Duration::from_millis(i64::MAX.unsigned_abs() / 2);

const SHORTEST: Duration = Duration::from_millis(10);
const TOO_SHORT: Duration = Duration::from_nanos(9_999_999);
const NANO: Duration = Duration::from_nanos(1);

/// Asserts which values of an option run the body, and which are refused; the request by hand has the same limits.
macro_rules! assert_values {
    ($name:literal [$($option:tt)*]($value:ident: $type:ty), $by_hand:expr, good: $good:expr, bad: $bad:expr) => {
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        async fn call(locks: &Locker, $value: $type) -> Result<(), LockError> {
            Ok(())
        }
        for value in $good {
            let locks = locker().await;
            let ran = call(&locks, value).await;
            assert!(ran.is_ok(), "{} = {value:?}: {ran:?}", $name);
            $by_hand(locks.lock("k"), value).check().unwrap();
        }
        for value in $bad {
            let locks = locker().await;
            let mistakes = [
                call(&locks, value).await.unwrap_err(),
                $by_hand(locks.lock("k"), value).check().unwrap_err(),
            ];
            assert_eq!(mistakes[0].to_string(), mistakes[1].to_string());
            for error in mistakes {
                assert_eq!(error.kind(), LockErrorKind::InvalidOption, "{value:?}: {error}");
                assert!(error.to_string().contains(concat!("`", $name, "`")), "{error}");
                assert!(error.key().is_some_and(|key| key.contains('k')), "{error}");
            }
        }
    };
}

#[tokio::test(start_paused = true)]
async fn expire_is_from_ten_milliseconds_to_the_longest_of_redis() {
    let too_long = LONGEST + Duration::from_millis(1);
    assert_values! { "expire" [expire = value](value: Duration), LockRequest::expire,
    good: [SHORTEST, LONGEST], bad: [Duration::ZERO, TOO_SHORT, too_long, Duration::MAX] }
}

#[tokio::test(start_paused = true)]
async fn wait_is_any_time() {
    assert_values! { "wait" [wait = value](value: Duration), LockRequest::wait,
    good: [Duration::ZERO, Duration::MAX], bad: [] }
}

#[tokio::test(start_paused = true)]
async fn max_hold_is_any_time_but_zero() {
    let by_hand = |request: LockRequest, most| request.renew().max_hold(most);
    assert_values! { "max_hold" [renew, max_hold = value](value: Duration), by_hand,
    good: [NANO, Duration::MAX], bad: [Duration::ZERO] }
}

#[tokio::test(start_paused = true)]
async fn min_hold_is_at_most_expire() {
    assert_values! { "min_hold" [min_hold = value](value: Duration), LockRequest::min_hold,
    good: [Duration::ZERO, LEASE], bad: [LEASE + NANO, Duration::MAX] }
}

/// By hand `keep` takes the time, so the request has none to check.
#[tokio::test(start_paused = true)]
async fn once_is_from_ten_milliseconds_to_the_longest_of_redis() {
    #[distributed_lock(key = "k", locker = locks, once = time)]
    async fn call(locks: &Locker, time: Duration) -> Result<(), LockError> {
        Ok(())
    }
    for time in [SHORTEST, LONGEST] {
        call(&locker().await, time).await.unwrap();
    }
    for time in [Duration::ZERO, TOO_SHORT, LONGEST + SHORTEST, Duration::MAX] {
        let error = call(&locker().await, time).await.unwrap_err();
        assert!(error.to_string().contains("`once`"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn permits_are_from_one_to_sixty_four() {
    assert_values! { "permits" [permits = value](value: u32), LockRequest::permits,
    good: [1, 64], bad: [0, 65, u32::MAX] }
}

#[tokio::test(start_paused = true)]
async fn all_permits_are_from_one_to_sixty_four() {
    assert_values! { "permits" [permits = all(value)](value: u32), LockRequest::all_permits,
    good: [1, 64], bad: [0, 65, u32::MAX] }
}
