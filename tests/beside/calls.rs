//! Functions that the tests call.

use lockable_runtime::distributed_lock;

use crate::{body, granted, here};

/// A function under both attributes, in both orders, and a test that calls it.
macro_rules! both_orders {
    ($($name:ident: #[$($other:tt)*] $($kind:ident)+;)*) => {$(
        mod $name {
            use super::*;

            #[$($other)*]
            #[distributed_lock(key = "k", locker = here())]
            $($kind)+ above() -> Option<u8> {
                body()
            }

            #[distributed_lock(key = "k", locker = here())]
            #[$($other)*]
            $($kind)+ below() -> Option<u8> {
                body()
            }

            #[test]
            fn above_is_locked() {
                assert_eq!((called!($($kind)+ above), granted()), (Some(7), 1));
            }

            #[test]
            fn below_is_locked() {
                assert_eq!((called!($($kind)+ below), granted()), (Some(7), 1));
            }
        }
    )*};
}

macro_rules! called {
    (async fn $name:ident) => {
        block_on($name())
    };
    (fn $name:ident) => {
        $name()
    };
}

both_orders! {
    recursive: #[async_recursion::async_recursion(?Send)] async fn;
    fastrace_async: #[fastrace::trace] async fn;
    fastrace_sync: #[fastrace::trace] fn;
    hotpath_async: #[hotpath::measure] async fn;
    hotpath_sync: #[hotpath::measure] fn;
    logged: #[logcall::logcall("info")] async fn;
    logged_sync: #[logcall::logcall("info")] fn;
    maybe: #[maybe_async::maybe_async] async fn;
    memoized: #[memoize::memoize] fn;
    traced: #[tracing::instrument] async fn;
    traced_sync: #[tracing::instrument] fn;
    documented: #[utoipa::path(get, path = "/")] async fn;
}

/// Above, `cached` puts the attribute on two functions, one inside of the other: the inner call is refused.
mod cached {
    use super::*;

    #[::cached::macros::cached]
    #[distributed_lock(key = "k", locker = here())]
    fn above() -> Option<u8> {
        body()
    }

    #[distributed_lock(key = "k", locker = here())]
    #[::cached::macros::cached]
    fn below() -> Option<u8> {
        body()
    }

    #[test]
    fn above_runs_no_body() {
        assert_eq!((above(), granted()), (None, 1));
    }

    #[test]
    fn below_a_hit_takes_no_lock() {
        assert_eq!((below(), below(), granted()), (Some(7), Some(7), 1));
    }
}

pub(crate) fn block_on<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
}
