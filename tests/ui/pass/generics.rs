//! Generics, lifetimes and the rest of a signature.

use std::fmt::Display;

use lockable_runtime::distributed_lock;

use crate::pause;

#[distributed_lock(key = "k:{t}:{u}")]
pub async fn bounds<'a, 'b: 'a, T: Display + Clone, U>(t: &'a T, u: &'b U) -> Option<T>
where
    U: Display + ?Sized,
    for<'x> &'x T: Sized,
{
    pause().await;
    let _ = u;
    Some(t.clone())
}

#[distributed_lock(key = "k:{N}")]
pub async fn constant<const N: usize>(bytes: [u8; N]) -> Option<usize> {
    pause().await;
    Some(bytes.len())
}

#[distributed_lock(key = "k:{n}")]
#[allow(non_upper_case_globals)]
pub async fn lower_case_constant<const n: usize>() -> Option<usize> {
    pause().await;
    Some(n)
}

/// # Safety
/// There is nothing to keep in mind.
#[distributed_lock(key = "k")]
pub async unsafe fn is_unsafe() {}

/// # Safety
/// As of what it calls.
#[distributed_lock(key = "k")]
#[allow(unsafe_op_in_unsafe_fn, clippy::missing_safety_doc)]
pub async unsafe fn calls_unsafe() {
    // Not polled, only made: the call itself is what needs the unsafe function around it.
    drop(is_unsafe());
}

#[distributed_lock(key = "k")]
pub async extern "Rust" fn has_an_abi() {}

mod visibilities {
    use super::distributed_lock;

    #[distributed_lock(key = "k")]
    pub(in super::visibilities) async fn in_path() {}

    #[distributed_lock(key = "k")]
    pub(super) async fn of_parent() {
        in_path().await;
    }

    #[distributed_lock(key = "k")]
    pub(crate) async fn of_crate() {}
}

pub async fn uses_them() {
    visibilities::of_parent().await;
    visibilities::of_crate().await;
}

pub fn futures_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(bounds(&1, &2));
    assert_send(constant([1]));
}

#[distributed_lock(key = "k:{name}")]
pub async fn higher_ranked(
    name: &str,
    items: Vec<&str>,
    f: impl AsyncFn(&str) -> usize,
) -> Option<usize> {
    let mut sum = 0;
    for item in items.iter().filter(|item| **item != name) {
        sum += f(item).await;
    }
    Some(sum)
}

#[distributed_lock(key = "k:{name}")]
pub async fn iterates(name: &str, items: Vec<&str>) -> Option<usize> {
    let mut sum = 0;
    for length in items.iter().map(|item| item.len()).filter(|length| *length > 1) {
        pause().await;
        sum += length;
    }
    Some(sum)
}

pub fn futures_with_references_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(async {
        let name = String::new();
        iterates(&name, vec![&name]).await
    });
}
