//! What a lease cannot do: release its lock.

/// Implemented by nothing.
#[diagnostic::on_unimplemented(
    message = "a lease cannot release its lock: that is done when the body ends",
    label = "the lock is held until the body ends",
    note = "return from the body earlier, or lock by hand: `locker.lock(\"..\").acquire()` gives a `LockGuard`, which has `release`"
)]
pub trait EndsEarly {}
