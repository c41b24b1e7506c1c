//! The key of a call, from the template to the name of the lock.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lockable_runtime::{LockError, LockKey, Locker, distributed_lock};

use crate::support::{Journal, ShopError, elapse, hold, is_free, locker, pause};

const REGION: &str = "e:u";
static ZONE: u8 = 3;

struct Order {
    line: (u8, String),
}

#[tokio::test]
async fn a_literal_is_the_key_after_the_prefix() {
    #[distributed_lock(key = "nightly", locker = locks, guard = lock)]
    async fn literal(locks: &Locker) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = r#"say "{{hi}}""#, locker = locks, guard = lock)]
    async fn raw(locks: &Locker) -> Option<String> {
        Some(lock.key().to_string())
    }
    let locks = locker().await;
    assert_eq!(literal(&locks).await.as_deref(), Some("disLock:nightly"));
    assert_eq!(raw(&locks).await.as_deref(), Some("disLock:say \"{hi}\""));
}

#[tokio::test]
async fn holes_take_parameters_constants_and_arguments() {
    #[distributed_lock(
        key(
            "{id}:{REGION}:{}:{0}:{zone}:{size}",
            order.line.0,
            size = order.line.1.len(),
            zone = ZONE,
        ),
        locker = locks,
        guard = lock
    )]
    async fn call(locks: &Locker, id: u8, order: &Order) -> Option<String> {
        let _ = (id, order);
        Some(lock.key().to_string())
    }
    let key = call(&locker().await, 1, &Order { line: (5, "x y".to_owned()) }).await;
    assert_eq!(key.as_deref(), Some("disLock:1:e%3Au:5:5:3:3"));
}

#[tokio::test]
async fn a_handmade_key_is_taken_as_it_is() {
    const KEY: LockKey = LockKey::from_static("by:hand");

    #[distributed_lock(key = KEY, locker = locks, guard = lock)]
    async fn constant(locks: &Locker) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = key, locker = locks, guard = lock)]
    async fn by_reference(locks: &Locker, key: &LockKey) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = LockKey::new(text)?, locker = locks, guard = lock)]
    async fn computed(locks: &Locker, text: &str) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
    let locks = locker().await;
    assert_eq!(constant(&locks).await.as_deref(), Some("disLock:by:hand"));
    assert_eq!(by_reference(&locks, &KEY).await.as_deref(), Some("disLock:by:hand"));
    assert_eq!(computed(&locks, "{tag}:7").await.unwrap(), "disLock:{tag}:7");
    assert!(computed(&locks, "a}").await.unwrap_err().is_invalid_key());
}

#[tokio::test]
async fn what_resembles_a_hole_may_be_text() {
    #[distributed_lock(key("order:id"), locker = locks, guard = lock)]
    async fn word(locks: &Locker, id: u8) -> Option<String> {
        let _ = id;
        Some(lock.key().to_string())
    }
    #[distributed_lock(key("order:${id}:#{id}:{{id}}"), locker = locks, guard = lock)]
    async fn signs(locks: &Locker, id: u8) -> Option<String> {
        let _ = id;
        Some(lock.key().to_string())
    }
    let locks = locker().await;
    assert_eq!(word(&locks, 7).await.as_deref(), Some("disLock:order:id"));
    assert_eq!(signs(&locks, 7).await.as_deref(), Some("disLock:order:$7:#7:{id}"));
}

/// Counts how often it is displayed.
struct Counted<'a>(&'a AtomicU32);

impl Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fetch_add(1, Ordering::Relaxed);
        f.write_str("counted")
    }
}

#[tokio::test]
async fn a_key_is_rendered_once_before_anything_is_moved() {
    #[distributed_lock(key("{value}:{}", count_up(calls)), locker = locks)]
    async fn call(locks: &Locker, value: Counted<'_>, calls: &mut u32) -> Option<u32> {
        let moved = value;
        assert_eq!(moved.0.load(Ordering::Relaxed), 1);
        Some(*calls)
    }
    fn count_up(calls: &mut u32) -> u32 {
        *calls += 1;
        *calls
    }
    let (displayed, mut calls) = (AtomicU32::new(0), 0);
    assert_eq!(call(&locker().await, Counted(&displayed), &mut calls).await, Some(1));
    assert_eq!((displayed.into_inner(), calls), (1, 1));
}

/// What an argument of a key awaits: writes whether the lock is held meanwhile.
async fn ask(locks: &Locker, journal: &Journal, id: u8) -> u8 {
    pause().await;
    let state = if is_free(locks, "7").await { "free" } else { "held" };
    journal.write(format!("asked when {state}"));
    id
}

#[distributed_lock(key("{}", ask(locks, journal, 7).await), locker = locks)]
async fn in_async_fn(locks: &Locker, journal: &Journal) -> Option<()> {
    journal.write("ran");
    Some(())
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[distributed_lock(key("{}", ask(locks, journal, 7).await), locker = locks)]
fn in_boxed_future<'a>(locks: &'a Locker, journal: &'a Journal) -> BoxFuture<'a, Option<()>> {
    journal.write("ran");
    Box::pin(async { Some(()) })
}

#[async_trait]
trait Job: Sync {
    fn id(&self) -> u8;

    #[distributed_lock(key("{}", ask(locks, journal, self.id()).await), locker = locks)]
    async fn in_async_trait(&self, locks: &Locker, journal: &Journal) -> Option<()> {
        journal.write("ran");
        Some(())
    }
}

struct Seventh;

impl Job for Seventh {
    fn id(&self) -> u8 {
        7
    }
}

#[tokio::test]
async fn an_argument_is_awaited_before_the_lock() {
    let (locks, journal) = (locker().await, Journal::default());
    assert!(in_async_fn(&locks, &journal).await.is_some());
    assert!(in_boxed_future(&locks, &journal).await.is_some());
    assert!(Seventh.in_async_trait(&locks, &journal).await.is_some());
    assert_eq!(journal.entries(), ["asked when free", "ran"].repeat(3));

    let (_other, journal) = (hold(&locks, "7").await, Journal::default());
    assert!(in_async_fn(&locks, &journal).await.is_none());
    assert!(in_boxed_future(&locks, &journal).await.is_none());
    assert!(Seventh.in_async_trait(&locks, &journal).await.is_none());
    assert_eq!(journal.entries(), ["asked when held"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_starts_after_an_awaited_argument() {
    #[distributed_lock(key("{}", slow().await), expire = 3, locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    async fn slow() -> u8 {
        elapse(Duration::from_secs(5)).await;
        7
    }
    let remaining = call(&locker().await).await;
    assert!(remaining.is_some_and(|left| left > Duration::from_secs(2)), "{remaining:?}");
}

#[tokio::test]
async fn a_question_mark_in_an_argument_leaves_the_function() {
    #[distributed_lock(key("{}", number?), locker = locks)]
    async fn result(locks: &Locker, number: Result<u8, ShopError>) -> Result<(), ShopError> {
        assert!(!is_free(locks, "7").await);
        Ok(())
    }
    #[distributed_lock(key("{}", text.parse::<u8>().ok()?), locker = locks)]
    async fn option(locks: &Locker, text: &str) -> Option<()> {
        assert!(!is_free(locks, "7").await);
        Some(())
    }
    let locks = locker().await;
    assert!(result(&locks, Ok(7)).await.is_ok());
    assert!(matches!(result(&locks, Err(ShopError::SoldOut)).await, Err(ShopError::SoldOut)));
    assert_eq!(option(&locks, "7").await, Some(()));
    assert_eq!(option(&locks, "seven").await, None);
}

/// Goal: no two pairs of values meet in one lock, however they are separated. Method: all pairs of
/// short texts over characters that mean something to a template, to Redis or to a terminal.
#[tokio::test]
async fn different_values_give_different_keys() {
    #[distributed_lock(key = "{a}:{b}", locker = locks, guard = lock)]
    async fn colon(locks: &Locker, a: &str, b: &str) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key("{{t}}{}-x{b}-", a), locker = locks, guard = lock)]
    async fn text(locks: &Locker, a: &str, b: &str) -> Option<String> {
        Some(lock.key().to_string())
    }
    #[distributed_lock(key = "{a}é{b}é{a}", locker = locks, guard = lock)]
    async fn twice(locks: &Locker, a: &str, b: &str) -> Option<String> {
        Some(lock.key().to_string())
    }
    let locks = locker().await;
    let letters = ["a", ":", "-", "x", "é", "%", "%3A", "{", "}", " ", "\n", "\u{85}"];
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
    let values: Vec<String> = letters.iter().map(ToString::to_string).chain(pairs).collect();
    let mut keys: [BTreeSet<String>; 3] = Default::default();
    for a in &values {
        for b in &values {
            let made = [
                colon(&locks, a, b).await.unwrap(),
                text(&locks, a, b).await.unwrap(),
                twice(&locks, a, b).await.unwrap(),
            ];
            for (keys, key) in keys.iter_mut().zip(made) {
                assert!(!key.contains([' ', '\n', '\u{85}']), "{key:?}");
                assert!(keys.insert(key), "({a:?}, {b:?}) have the key of another pair");
            }
        }
    }
}

#[tokio::test]
async fn ordinary_values_are_left_alone() {
    #[distributed_lock(key = "{a}-{b}/{c}", locker = locks, guard = lock)]
    async fn call(locks: &Locker, a: &str, b: i64, c: char) -> Option<String> {
        let _ = (a, b, c);
        Some(lock.key().to_string())
    }
    let locks = locker().await;
    let key = call(&locks, "user@example.org_7", -7, 'ß').await;
    assert_eq!(key.as_deref(), Some("disLock:user@example.org_7--7/ß"));
    let key = call(&locks, "a-b/c", 7, '/').await;
    assert_eq!(key.as_deref(), Some("disLock:a%2Db/c-7//"));
}

#[tokio::test]
async fn an_impossible_key_refuses_the_call() {
    #[distributed_lock(key = "order:{id}", locker = locks)]
    async fn call(locks: &Locker, id: &str) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    let empty = call(&locks, "").await.unwrap_err();
    assert!(empty.is_invalid_key());
    assert!(empty.to_string().contains("order:{id}"), "{empty}");
    let long = call(&locks, &"7".repeat(1_024)).await.unwrap_err();
    assert!(long.is_invalid_key());
    assert!(long.to_string().contains("1 KiB"), "{long}");
}

#[tokio::test]
async fn a_template_in_a_macro_names_its_bindings() {
    macro_rules! make {
        ($name:ident, $id:ident, $type:ty, $key:literal, $body:block, $expire:expr) => {
            #[distributed_lock(key = $key, expire = $expire, locker = locks)]
            async fn $name(locks: &Locker, $id: $type) -> Option<$type> $body
        };
    }
    make!(made, id, u8, "made:{id}", { Some(id + 1) }, 10);
    assert_eq!(made(&locker().await, 6).await, Some(7));
}
