//! Parameters and patterns.

use std::cell::Cell;
use std::fmt::Display;
use std::rc::Rc;

use lockable_runtime::distributed_lock;

use crate::pause;

pub struct Point {
    pub x: u64,
    pub y: u64,
}

pub struct Pair(pub u64, pub String);

#[distributed_lock(key = "k:{id}")]
pub async fn only_in_the_key(id: u64) {}

#[distributed_lock(key = "k:{id}")]
pub async fn underscores(id: u64, _permit: String, _: String, _: u8) {}

#[distributed_lock(key = "k:{s}:{number}", on_busy = s.len(), on_error = |_| 0)]
pub async fn references(s: &str, m: &mut String, number: &u8, bytes: &[u8]) -> usize {
    m.push('x');
    pause().await;
    m.len() + bytes.len() + s.len() + usize::from(*number)
}

#[distributed_lock(key = "k:{s}")]
pub async fn gives_a_reference<'a>(s: &'a str, _other: &str) -> Option<&'a str> {
    Some(s)
}

#[distributed_lock(key = "k:{s}")]
pub async fn gives_an_elided_reference(s: &str) -> Option<&str> {
    pause().await;
    Some(s)
}

#[distributed_lock(key = "k:{x}")]
pub async fn mutable(mut x: usize, mut v: Vec<u8>) -> Option<usize> {
    x += 1;
    v.push(1);
    pause().await;
    Some(x + v.len())
}

#[distributed_lock(key = "k:{a}-{b}:{x}:{other}:{p}:{q}:{first}")]
#[allow(clippy::many_single_char_names, reason = "this is the shape")]
pub async fn patterns(
    (a, b): (u8, u8),
    Point { x, y: other }: Point,
    Pair(p, q): Pair,
    [first, .., last]: [u8; 3],
) -> Option<u64> {
    pause().await;
    Some(u64::from(a + b + first + last) + x + other + p + q.len() as u64)
}

#[distributed_lock(key = "k:{shown}")]
pub async fn impl_traits(shown: impl Display, f: impl AsyncFn(u8) -> u8) -> Option<u8> {
    drop(shown);
    Some(f(3).await)
}

#[distributed_lock(key = "k:{type}")]
pub async fn r#async(r#type: u8) -> Option<u8> {
    Some(r#type)
}

#[distributed_lock(key = "k")]
pub async fn attributes(
    #[cfg(any())] gone: Nothing,
    #[expect(unused_variables)] unused: u8,
    #[cfg(any())] _gone: Nothing,
) {
}

#[distributed_lock(key = "k")]
pub async fn not_sync(cell: Cell<u8>, list: Box<dyn Iterator<Item = u8> + Send>) -> Option<u8> {
    pause().await;
    cell.set(cell.get() + 1);
    pause().await;
    list.into_iter().next()
}

#[distributed_lock(key("{}", *number))]
pub async fn not_send(number: Rc<u8>) -> Option<u8> {
    pause().await;
    Some(*number)
}

#[distributed_lock(key("{}", work.id), on_busy = skip)]
pub async fn partly_used(work: Work, list: Vec<String>) -> Option<u64> {
    pause().await;
    for text in list {
        drop(text);
    }
    let Work { id, .. } = work;
    Some(id)
}

pub struct Work {
    pub id: u64,
    pub permit: String,
}

#[distributed_lock(
    key = "k:{call}:{body}:{error}:{guard}:{value}:{granted}:{locker}",
    on_busy = Some(call + body + error + guard + value + granted + locker)
)]
pub async fn names_of_the_expansion(
    call: u8,
    body: u8,
    error: u8,
    guard: u8,
    value: u8,
    granted: u8,
    locker: u8,
) -> Option<u8> {
    pause().await;
    Some(call + body + error + guard + value + granted + locker)
}

pub fn futures_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(references("", &mut String::new(), &1, &[]));
    assert_send(not_sync(Cell::new(1), Box::new(vec![].into_iter())));
    assert_send(names_of_the_expansion(1, 1, 1, 1, 1, 1, 1));
}
