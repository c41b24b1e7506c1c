//! What a call gives back, by the function's return type.
#![allow(clippy::redundant_pattern_matching, reason = "one macro asserts every pattern")]

use std::error::Error;
use std::fmt::{self, Display};
use std::future::Future;

use lockable_runtime::{LockError, Locker, distributed_lock};

use crate::support::{ShopError, hold, is_free, locker, pause};

type Shop<T> = Result<T, ShopError>;

/// The body's value when the lock is free, and what a busy lock makes of it; the lock is held
/// during the body and free after it.
macro_rules! assert_calls {
    ($call:expr, free: $free:pat, busy: $busy:pat $(if $guard:expr)?) => {{
        let locks = locker().await;
        assert!(matches!($call(&locks).await, $free));
        assert!(is_free(&locks, "k").await, "the lock was not released");
        let other = hold(&locks, "k").await;
        assert!(matches!($call(&locks).await, $busy $(if $guard)?));
        assert!(other.release().await.is_ok(), "the other holder's lock was touched");
    }};
}

/// Every body below says by this that it runs under the lock.
async fn must_be_held(locks: &Locker) {
    pause().await;
    assert!(!is_free(locks, "k").await, "the body runs without the lock");
}

#[tokio::test]
async fn unit_skips_when_busy() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn unit(locks: &Locker, runs: &mut u32) {
        must_be_held(locks).await;
        *runs += 1;
    }

    #[distributed_lock(key = "k", locker = locks)]
    async fn explicit(locks: &Locker, runs: &mut u32) -> () {
        *runs += 1;
    }

    let (locks, mut runs) = (locker().await, 0);
    unit(&locks, &mut runs).await;
    explicit(&locks, &mut runs).await;
    assert_eq!(runs, 2);
    let _other = hold(&locks, "k").await;
    unit(&locks, &mut runs).await;
    explicit(&locks, &mut runs).await;
    assert_eq!(runs, 2);
}

#[tokio::test]
async fn option_gives_none_when_busy() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Option<u8> {
        must_be_held(locks).await;
        Some(7)
    }
    assert_calls!(call, free: Some(7), busy: None);
}

#[tokio::test]
async fn result_gives_an_error_made_from_the_lock_error() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Result<u8, ShopError> {
        must_be_held(locks).await;
        Ok(7)
    }
    assert_calls!(call, free: Ok(7), busy: Err(ShopError::Lock(error)) if error.is_busy());
}

#[tokio::test]
async fn the_lock_error_itself_is_given_unchanged() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker) -> Result<u8, LockError> {
        must_be_held(locks).await;
        Ok(7)
    }
    assert_calls!(call, free: Ok(7), busy: Err(error) if error.is_busy());
}

#[tokio::test]
async fn boxed_errors_hold_the_lock_error() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn local(locks: &Locker) -> Result<u8, Box<dyn Error>> {
        must_be_held(locks).await;
        Ok(7)
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn shared(locks: &Locker) -> Result<u8, Box<dyn Error + Send + Sync>> {
        must_be_held(locks).await;
        Ok(7)
    }
    assert_calls!(local, free: Ok(7), busy: Err(error) if error.is::<LockError>());
    assert_calls!(shared, free: Ok(7), busy: Err(error) if error.is::<LockError>());
}

#[tokio::test]
async fn an_alias_is_the_type_it_names() {
    type Perhaps = Option<u8>;
    type Nothing = ();

    #[distributed_lock(key = "k", locker = locks)]
    async fn result(locks: &Locker) -> Shop<u8> {
        must_be_held(locks).await;
        Ok(7)
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn option(locks: &Locker) -> Perhaps {
        Some(7)
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn unit(locks: &Locker) -> Nothing {
        must_be_held(locks).await;
    }
    assert_calls!(result, free: Ok(7), busy: Err(ShopError::Lock(_)));
    assert_calls!(option, free: Some(7), busy: None);
    assert_calls!(unit, free: (), busy: ());
}

#[tokio::test]
async fn of_nested_types_the_outer_one_decides() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn result(locks: &Locker) -> Result<Result<u8, fmt::Error>, ShopError> {
        must_be_held(locks).await;
        Ok(Err(fmt::Error))
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn option(locks: &Locker) -> Option<Result<u8, fmt::Error>> {
        must_be_held(locks).await;
        Some(Ok(7))
    }
    assert_calls!(result, free: Ok(Err(fmt::Error)), busy: Err(ShopError::Lock(_)));
    assert_calls!(option, free: Some(Ok(7)), busy: None);
}

#[tokio::test]
async fn any_type_works_with_both_answers() {
    #[distributed_lock(key = "k", locker = locks, on_busy = 1, on_error = |_| 2)]
    async fn call(locks: &Locker) -> u32 {
        must_be_held(locks).await;
        7
    }
    assert_calls!(call, free: 7, busy: 1);
}

#[tokio::test]
async fn on_busy_alone_suffices_where_the_type_has_errors() {
    #[distributed_lock(key = "k", locker = locks, on_busy = Some(1))]
    async fn option(locks: &Locker) -> Option<u8> {
        must_be_held(locks).await;
        Some(7)
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = Ok(1))]
    async fn result(locks: &Locker) -> Shop<u8> {
        must_be_held(locks).await;
        Ok(7)
    }
    assert_calls!(option, free: Some(7), busy: Some(1));
    assert_calls!(result, free: Ok(7), busy: Ok(1));
}

#[tokio::test]
async fn on_error_alone_leaves_busy_to_the_type() {
    #[distributed_lock(key = "k", locker = locks, on_error = |_| Some(2))]
    async fn option(locks: &Locker) -> Option<u8> {
        must_be_held(locks).await;
        Some(7)
    }
    assert_calls!(option, free: Some(7), busy: None);
}

#[tokio::test]
async fn skip_means_nothing_to_do_on_four_types() {
    #[distributed_lock(key = "k", locker = locks, on_busy = skip)]
    async fn unit(locks: &Locker) {
        must_be_held(locks).await;
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = skip)]
    async fn option(locks: &Locker) -> Option<u8> {
        must_be_held(locks).await;
        Some(7)
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = skip)]
    async fn result(locks: &Locker) -> Shop<()> {
        must_be_held(locks).await;
        Ok(())
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = skip)]
    async fn result_of_option(locks: &Locker) -> Shop<Option<u8>> {
        must_be_held(locks).await;
        Ok(Some(7))
    }
    assert_calls!(unit, free: (), busy: ());
    assert_calls!(option, free: Some(7), busy: None);
    assert_calls!(result, free: Ok(()), busy: Ok(()));
    assert_calls!(result_of_option, free: Ok(Some(7)), busy: Ok(None));
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
    async fn in_result(locks: &Locker) -> Shop<impl Iterator<Item = u8> + use<>> {
        must_be_held(locks).await;
        Ok([3, 4].into_iter())
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = (1, 1), on_error = |_| (2, 2))]
    async fn in_tuple(locks: &Locker) -> (impl Display + use<>, u8) {
        must_be_held(locks).await;
        (7_u8, 7)
    }
    let locks = locker().await;
    assert_eq!(hidden(&locks).await.to_string(), "7");
    assert_eq!(in_option(&locks).await.unwrap().to_string(), "7");
    assert_eq!(in_result(&locks).await.unwrap().sum::<u8>(), 7);
    assert_eq!(in_tuple(&locks).await.0.to_string(), "7");
    let _other = hold(&locks, "k").await;
    assert_eq!(hidden(&locks).await.to_string(), "1");
    assert!(in_option(&locks).await.is_none());
    assert!(in_result(&locks).await.is_err());
    assert_eq!(in_tuple(&locks).await.1, 1);
}

#[tokio::test]
async fn a_body_may_give_a_future_that_runs_later() {
    #[distributed_lock(
        key = "k",
        locker = locks,
        on_busy = std::future::ready(1),
        on_error = |_| std::future::ready(2)
    )]
    async fn later(locks: &Locker) -> impl Future<Output = u8> + Send + use<> {
        must_be_held(locks).await;
        std::future::ready(7)
    }
    let locks = locker().await;
    assert_eq!(later(&locks).await.await, 7);
    let _other = hold(&locks, "k").await;
    assert_eq!(later(&locks).await.await, 1);
}

#[tokio::test]
async fn the_signature_decides_what_the_body_is_coerced_to() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn coerced(locks: &Locker) -> Shop<Box<dyn Fn() -> u8 + Send>> {
        must_be_held(locks).await;
        Ok(Box::new(|| 7))
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = Vec::new(), on_error = |_| vec![])]
    async fn collected(locks: &Locker) -> Vec<u8> {
        must_be_held(locks).await;
        [3, 4].into_iter().collect()
    }
    let locks = locker().await;
    assert_eq!(coerced(&locks).await.unwrap()(), 7);
    assert_eq!(collected(&locks).await, [3, 4]);
}
