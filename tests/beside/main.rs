//! The attribute beside those of other crates, above and below them: one call runs the body once, under one lock.
//!
//! The table "With other attributes" in the documentation has what is found here, with the versions of `Cargo.lock`.

mod calls;
mod methods;
mod tests;

use lockable_runtime::Locker;
use lockable_runtime::testing::TestLocks;

thread_local! {
    /// The locks of one test: each has a thread of its own.
    static LOCKS: TestLocks = TestLocks::new();
}

/// The locker of the option `locker`.
fn here() -> Locker {
    LOCKS.with(|locks| locks.locker().clone())
}

/// Every body: it runs under its lock, which was acquired once.
fn body() -> Option<u8> {
    assert_eq!(granted(), 1, "the body runs without its lock");
    LOCKS.with(|locks| locks.holder("k")).map(|_| 7)
}

/// How often the lock was acquired.
fn granted() -> usize {
    LOCKS.with(|locks| locks.counts("k").granted)
}
