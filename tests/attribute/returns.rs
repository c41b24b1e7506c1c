//! What a call gives back, by the function's return type.
#![allow(clippy::redundant_pattern_matching, reason = "one macro asserts every pattern")]

use std::error::Error;
use std::fmt::{self, Display};
use std::future::{Future, Ready, ready};

use lockable_runtime::{AfterRelease, LockError, Locker, distributed_lock};

use crate::support::{SECOND, ShopError, hold, is_free, locker, pause};

type Shop<T> = Result<T, ShopError>;

/// Every body below says by this that it runs under the lock.
async fn must_be_held(locks: &Locker) {
    pause().await;
    assert!(!is_free(locks, "k"), "the body runs without the lock");
}

/// Asserts what functions with these options give: the body's value when the lock is free, and the second one when it
/// is busy, also at the end of a wait. The lock is held during the body and free after it.
macro_rules! assert_calls {
    ([$($option:tt)*] -> $type:ty { $($value:tt)* } busy { $($busy:tt)* }) => {{
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        async fn call(locks: &Locker) -> $type {
            must_be_held(locks).await;
            $($value)*
        }
        #[distributed_lock(key = "k", locker = locks, wait = SECOND, $($option)*)]
        async fn waits(locks: &Locker) -> $type {
            must_be_held(locks).await;
            $($value)*
        }
        #[distributed_lock(key = "k", locker = locks, $($option)*)]
        fn sync(locks: &Locker) -> $type {
            assert!(!is_free(locks, "k"), "the body runs without the lock");
            $($value)*
        }
        let locks = locker().await;
        for _ in 0..2 {
            assert!(matches!(call(&locks).await, $($value)*));
            assert!(matches!(waits(&locks).await, $($value)*));
            assert!(matches!(sync(&locks), $($value)*));
        }
        assert!(is_free(&locks, "k"), "the lock was not released");
        let other = hold(&locks, "k").await;
        assert!(matches!(call(&locks).await, $($busy)*));
        assert!(matches!(waits(&locks).await, $($busy)*));
        assert!(matches!(sync(&locks), $($busy)*));
        assert!(other.release().await.is_ok(), "the other holder's lock was touched");
    }};
}

#[tokio::test]
async fn unit_skips_when_busy() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn unit(locks: &Locker, runs: &mut u32) {
        must_be_held(locks).await;
        *runs += 1;
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn sync(locks: &Locker, runs: &mut u32) {
        *runs += 1;
    }
    let (locks, mut runs) = (locker().await, 0);
    unit(&locks, &mut runs).await;
    sync(&locks, &mut runs);
    assert_eq!(runs, 2);
    let _other = hold(&locks, "k").await;
    unit(&locks, &mut runs).await;
    sync(&locks, &mut runs);
    assert_eq!(runs, 2);
}

#[tokio::test(start_paused = true)]
async fn option_gives_none_when_busy() {
    assert_calls!([] -> Option<u8> { Some(7) } busy { None });
}

#[tokio::test(start_paused = true)]
async fn result_gives_an_error_made_from_the_lock_error() {
    assert_calls!([] -> Result<u8, ShopError> { Ok(7) }
        busy { Err(ShopError::Lock(error)) if error.is_busy() });
}

#[tokio::test(start_paused = true)]
async fn the_lock_error_itself_is_given_unchanged() {
    assert_calls!([] -> Result<u8, LockError> { Ok(7) } busy { Err(error) if error.is_busy() });
}

#[tokio::test(start_paused = true)]
async fn boxed_errors_hold_the_lock_error() {
    assert_calls!([] -> Result<u8, Box<dyn Error>> { Ok(7) }
        busy { Err(error) if error.is::<LockError>() });
    assert_calls!([] -> Result<u8, Box<dyn Error + Send + Sync>> { Ok(7) }
        busy { Err(error) if error.is::<LockError>() });
}

#[tokio::test(start_paused = true)]
async fn an_alias_is_the_type_it_names() {
    type Perhaps = Option<u8>;
    type Nothing = ();

    assert_calls!([] -> Shop<u8> { Ok(7) } busy { Err(ShopError::Lock(_)) });
    assert_calls!([] -> Perhaps { Some(7) } busy { None });
    assert_calls!([] -> Nothing { () } busy { () });
}

#[tokio::test(start_paused = true)]
async fn of_nested_types_the_outer_one_decides() {
    assert_calls!([] -> Shop<Result<u8, fmt::Error>> { Ok(Err(fmt::Error)) }
        busy { Err(ShopError::Lock(_)) });
    assert_calls!([] -> Option<Result<u8, fmt::Error>> { Some(Ok(7)) } busy { None });
}

#[tokio::test(start_paused = true)]
async fn any_type_works_with_both_answers() {
    assert_calls!([on_busy = 1, on_error = |_| 2] -> u32 { 7 } busy { 1 });
}

#[tokio::test(start_paused = true)]
async fn on_busy_alone_suffices_where_the_type_has_errors() {
    assert_calls!([on_busy = Some(1)] -> Option<u8> { Some(7) } busy { Some(1) });
    assert_calls!([on_busy = Ok(1)] -> Shop<u8> { Ok(7) } busy { Ok(1) });
}

#[tokio::test(start_paused = true)]
async fn on_error_alone_leaves_busy_to_the_type() {
    assert_calls!([on_error = |_| Some(2)] -> Option<u8> { Some(7) } busy { None });
}

#[tokio::test(start_paused = true)]
async fn skip_means_nothing_to_do_on_four_types() {
    assert_calls!([on_busy = skip] -> () { () } busy { () });
    assert_calls!([on_busy = skip] -> Option<u8> { Some(7) } busy { None });
    assert_calls!([on_busy = skip] -> Shop<()> { Ok(()) } busy { Ok(()) });
    assert_calls!([on_busy = skip] -> Shop<Option<u8>> { Ok(Some(7)) } busy { Ok(None) });
}

#[tokio::test]
async fn opaque_types_are_inferred_from_the_body() {
    #[distributed_lock(key = "k", locker = locks, on_busy = 1, on_error = |_| 2)]
    async fn hidden(locks: &Locker) -> impl Display + use<> {
        must_be_held(locks).await;
        7_u8
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn in_option(locks: &Locker) -> Option<impl Display + use<>> {
        must_be_held(locks).await;
        Some(7_u8)
    }
    #[distributed_lock(key = "k", locker = locks)]
    fn in_result(locks: &Locker) -> Shop<AfterRelease<impl Iterator<Item = u8> + use<>>> {
        assert!(!is_free(locks, "k"));
        Ok(AfterRelease([3, 4].into_iter()))
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = (1, 1), on_error = |_| (2, 2))]
    async fn in_tuple(locks: &Locker) -> (impl Display + use<>, u8) {
        must_be_held(locks).await;
        (7_u8, 7)
    }
    let locks = locker().await;
    assert_eq!(hidden(&locks).await.to_string(), "7");
    assert_eq!(in_option(&locks).await.unwrap().to_string(), "7");
    assert_eq!(in_result(&locks).unwrap().0.sum::<u8>(), 7);
    assert_eq!(in_tuple(&locks).await.0.to_string(), "7");
    let _other = hold(&locks, "k").await;
    assert_eq!(hidden(&locks).await.to_string(), "1");
    assert!(in_option(&locks).await.is_none());
    assert!(in_result(&locks).is_err());
    assert_eq!(in_tuple(&locks).await.1, 1);
}

#[tokio::test]
async fn a_body_gives_what_runs_later_on_purpose() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn later(locks: &Locker) -> Option<AfterRelease<impl Future<Output = bool> + use<>>> {
        must_be_held(locks).await;
        let locks = locks.clone();
        Some(AfterRelease(async move { is_free(&locks, "k") }))
    }
    /// What a caller chooses for a type parameter is the caller's affair.
    #[distributed_lock(key = "k", locker = locks, on_busy = value, on_error = |_| panic!("no lock"))]
    fn sync<T>(locks: &Locker, value: T) -> T {
        value
    }
    let locks = locker().await;
    assert!(later(&locks).await.unwrap().0.await);
    assert_eq!(sync::<Ready<u8>>(&locks, ready(7)).await, 7);
}

#[tokio::test]
async fn the_signature_decides_what_the_body_is_coerced_to() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn coerced(locks: &Locker) -> Shop<Box<dyn Fn() -> u8 + Send>> {
        must_be_held(locks).await;
        Ok(Box::new(|| 7))
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = Vec::new(), on_error = |_| vec![])]
    fn collected(locks: &Locker) -> Vec<u8> {
        [3, 4].into_iter().collect()
    }
    let locks = locker().await;
    assert_eq!(coerced(&locks).await.unwrap()(), 7);
    assert_eq!(collected(&locks), [3, 4]);
}
