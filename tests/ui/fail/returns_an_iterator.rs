#![deny(warnings)]

use std::iter::FusedIterator;

use lockable_runtime::{AfterRelease, LockError, distributed_lock};

#[distributed_lock(key = "k")]
async fn in_a_result() -> Result<impl Iterator<Item = u8>, LockError> {
    Ok((0..3).map(|item| item + 1))
}

#[distributed_lock(key = "k")]
fn boxed() -> Option<Box<impl DoubleEndedIterator<Item = u8> + FusedIterator>> {
    Some(Box::new(0..3))
}

#[distributed_lock(key = "k", on_busy = 0..0, on_error = |_| 0..0)]
fn alone() -> impl ExactSizeIterator<Item = u8> {
    0..3
}

#[distributed_lock(key = "k")]
async fn on_purpose() -> Option<AfterRelease<impl Iterator<Item = u8>>> {
    Some(AfterRelease(0..3))
}

fn main() {
    drop((in_a_result(), boxed(), alone(), on_purpose()));
}
