//! Keys and durations.

use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use lockable_runtime::{Lease, Leases, LockError, LockKey, Locker, distributed_lock, lock_key};

const LIMIT: u8 = 3;
#[allow(non_upper_case_globals)]
static lower: u8 = 3;
const KEY: LockKey = LockKey::from_static("by:hand");

pub struct Order(pub u8, pub String);

#[distributed_lock(key("k:{LIMIT}:{}", lower))]
pub async fn constants() {}

#[distributed_lock(key("{}:{x}:{0}:{y}", order.0 + 1, y = order.1.len()), prefix = "p:")]
pub async fn arguments(order: &Order, x: u8) -> Option<u8> {
    let _ = order;
    Some(x)
}

#[distributed_lock(key("{}", u8::try_from(x)?))]
pub async fn question_mark(x: u32) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    Ok(x)
}

#[distributed_lock(key("{}", if x > 1 { 2 } else { 1 },), expire = Duration::from_secs(1) * 2)]
pub async fn branches(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key = KEY, expire = "1m30s")]
pub async fn by_hand() {}

#[distributed_lock(key = &key, expire = expire)]
pub async fn by_reference(key: LockKey, expire: Duration) -> Option<u8> {
    let _ = (key, expire);
    Some(1)
}

#[distributed_lock(key = LockKey::new(text)?)]
pub async fn computed(text: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "{{tag}}:{x}")]
pub async fn hash_tag(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key("price:${x}:#{x}"))]
pub async fn signs_are_meant(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key("x:order"))]
pub async fn name_is_meant(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key = "self:xs:X")]
pub async fn only_resembles_a_name(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key = "x:{y}")]
pub async fn name_beside_a_hole(x: u8, y: u8) -> Option<u8> {
    Some(x + y)
}

#[distributed_lock(key = r#"say "{x}""#)]
pub async fn raw(x: u8) -> Option<u8> {
    Some(x)
}

#[distributed_lock(key = "é{x}ß{y}")]
pub async fn not_ascii(x: u8, y: u8) -> Option<u8> {
    Some(x + y)
}

#[distributed_lock(key("{}", name.lock().map_or(0, |name| name.len())))]
pub async fn short_lived(name: &Mutex<String>) -> Option<u8> {
    std::future::ready(()).await;
    name.lock().ok()?.bytes().next()
}

#[distributed_lock(key("{x}:{}:{}", x + 1, doubled(&x).await))]
pub async fn awaited(x: u8) -> Option<u8> {
    Some(x)
}

async fn doubled(x: &u8) -> u8 {
    std::future::ready(()).await;
    x * 2
}

pub static LOCKS: LazyLock<Option<Locker>> = LazyLock::new(|| None);

#[distributed_lock(key = "k", locker = LOCKS.as_ref()?.clone())]
pub async fn lazy_locker() -> Option<u8> {
    Some(7)
}

pub struct Looks<'a>(&'a Lease);

impl Looks<'_> {
    fn seconds(&self) -> u64 {
        self.0.remaining().as_secs()
    }
}

impl Drop for Looks<'_> {
    fn drop(&mut self) {}
}

#[distributed_lock(key = "k", guard = lock)]
pub async fn temporary_at_the_end() -> Option<u64> {
    Some(Looks(&lock).seconds())
}

#[distributed_lock(key = "k", guard = lock, on_busy = Some(1))]
pub async fn temporary_at_the_end_with_an_answer() -> Option<u64> {
    Some(Looks(&lock).seconds())
}

pub fn futures_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(short_lived(&Mutex::new(String::new())));
    assert_send(awaited(1));
}

#[distributed_lock(keys = ["account:{from}", "account:{to}"], guard = locks)]
pub async fn several(from: u8, to: u8) -> Option<usize> {
    Some(locks.len() + usize::from(from + to))
}

#[distributed_lock(keys = keys, wait)]
pub fn several_by_hand(keys: Vec<LockKey>) {}

#[distributed_lock(keys = [lock_key!("{}", order.0), lock_key!("{x}")], prefix = "{tag}:", guard = locks)]
pub async fn several_computed(order: &Order, x: u8) -> Result<Leases, LockError> {
    Ok(locks)
}

pub fn several_can_be_sent() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(several(1, 2));
}
