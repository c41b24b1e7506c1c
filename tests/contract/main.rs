//! The behaviour that every backend owes: each claim is written once and runs on all of them.

/// Makes a test of each claim for every backend that has more than the contract of a store asks for: permits, `once`, and
/// what operators need. A backend is one line here, and a [`Fixture`].
///
/// `one_thread` and `many_threads` say what a claim runs on. Sentinels change how a server is found, and what
/// becomes of a connection. The claims after `and_sentinel` depend on that: they open connections, tell stores
/// apart, wait, hear of losses, renew, or send something again. The others run behind Sentinels with
/// `--include-ignored` only.
///
/// The same claims depend on what a hosted service may lack, and run on a server that lacks all of it too; with
/// `LOCKABLE_LACKS=tracking`, `resp3`, `pubsub` or `config` on one that lacks this alone. Without
/// notifications calls of several processes have no order, so the claims after `and_order` are left out there.
///
/// [`Fixture`]: crate::fixture::Fixture
macro_rules! every_full_backend {
    (
        $runtime:ident: [$($claim:ident),* $(,)?]
        $(and_sentinel: [$($found:ident),* $(,)?])?
        $(and_order: [$($ordered:ident),* $(,)?])?
    ) => {
        every_claim! { memory: Memory, $runtime, [$($claim,)* $($($found,)*)? $($($ordered,)*)?] }
        every_claim! { redis: Redis, $runtime, [$($claim,)* $($($found,)*)? $($($ordered,)*)?] }
        every_claim! { cluster: Sharded, $runtime, [$($claim,)* $($($found,)*)? $($($ordered,)*)?] }
        every_claim! { sentinel: Sentinel, $runtime, [
            $($($found,)*)? $($($ordered,)*)?
            $(#[ignore = "a server does the same without Sentinels; `--include-ignored`"] $claim,)*
        ] }
        every_claim! { bare: Bare, $runtime, [$($($found,)*)?] }
    };
}

/// Makes a test of each claim for every backend, and for the smallest store, which has nothing but what the contract of a
/// store asks for. The claims after `and_operators`, as those after `and_order`, do not run on that.
macro_rules! every_backend {
    (
        $runtime:ident: [$($claim:ident),* $(,)?]
        $(and_sentinel: [$($found:ident),* $(,)?])?
        $(and_order: [$($ordered:ident),* $(,)?])?
        $(and_operators: [$($operated:ident),* $(,)?])?
    ) => {
        every_full_backend! {
            $runtime: [$($claim),*]
            and_sentinel: [$($($found,)*)? $($($operated,)*)?]
            and_order: [$($($ordered),*)?]
        }
        every_claim! { stub: Stub, $runtime, [$($claim,)* $($($found,)*)?] }
    };
}

/// Makes a test of each claim for one backend.
macro_rules! every_claim {
    (
        $module:ident: $fixture:ident, $runtime:ident,
        [$($(#[$attribute:meta])? $claim:ident),* $(,)?]
    ) => {
        mod $module {
            $(
                #[test]
                $(#[$attribute])?
                fn $claim() {
                    let start = crate::fixture::$fixture::start;
                    crate::fixture::$runtime(start, |store| Box::pin(super::$claim(store)));
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
mod lead;
mod leftovers;
mod loss;
mod obstacles;
mod once;
mod pairs;
mod pauses;
mod permits;
mod reentry;
mod release;
mod renewal;
mod sets;
mod tickets;
mod verbs;
mod waiting;
