//! The behaviour that every backend owes: each claim is written once and runs on all of them.

/// Makes a test of each claim for every backend. A backend is one line here, and a [`Fixture`].
///
/// `one_thread` and `many_threads` say what a claim runs on.
///
/// [`Fixture`]: crate::fixture::Fixture
macro_rules! every_backend {
    ($runtime:ident: $claims:tt) => {
        every_claim! { memory: Memory, $runtime, $claims }
        every_claim! { redis: Redis, $runtime, $claims }
        every_claim! { sentinel: Sentinel, $runtime, $claims }
        every_claim! { cluster: Sharded, $runtime, $claims }
    };
}

macro_rules! every_claim {
    ($module:ident: $fixture:ident, $runtime:ident, [$($claim:ident),* $(,)?]) => {
        mod $module {
            $(
                #[test]
                fn $claim() {
                    crate::fixture::$runtime::<crate::fixture::$fixture>(super::$claim);
                }
            )*
        }
    };
}

mod fixture;

mod body;
mod cancellation;
mod exclusion;
mod expiry;
mod fencing;
mod guard;
mod hold_times;
mod inspect;
mod leftovers;
mod loss;
mod reentry;
mod release;
mod renewal;
mod verbs;
mod waiting;
