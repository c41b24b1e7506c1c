//! The key of a call, from the template to the name of the lock.

use lockable_runtime::LockErrorKind;
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lockable_runtime::{LockError, LockKey, Locker, distributed_lock};

use crate::support::{
    BoxFuture, Journal, SECOND, ShopError, elapse, hold, is_free, key_of, locker, pause,
};

const REGION: &str = "e:u";
static ZONE: u8 = 3;

struct Order {
    line: (u8, String),
}

#[tokio::test(start_paused = true)]
async fn a_literal_is_the_key_after_the_prefix() {
    let locks = locker().await;
    assert_eq!(key_of!(&locks, [key = "nightly"]()), "disLock:nightly");
    assert_eq!(key_of!(&locks, [key = r#"say "{{hi}}""#]()), "disLock:say \"{hi}\"");
}

#[tokio::test(start_paused = true)]
async fn holes_take_parameters_constants_and_arguments() {
    let key = key_of!(
        &locker().await,
        [key(
            "{id}:{REGION}:{}:{0}:{zone}:{size}:{type}",
            order.line.0,
            size = order.line.1.len(),
            zone = ZONE,
        )](id: u8 = 1, order: &Order = &Order { line: (5, "x y".to_owned()) }, r#type: u8 = 7)
    );
    assert_eq!(key, "disLock:1:e%3Au:5:5:3:3:7");
}

#[tokio::test(start_paused = true)]
async fn holes_take_values_and_constants_of_generic_types() {
    #[distributed_lock(key = "{value}:{N}:{shown}", locker = locks, guard = lock)]
    async fn call<T: Display, const N: usize>(
        locks: &Locker,
        value: &T,
        shown: impl Display,
    ) -> Option<String> {
        drop(shown);
        Some(lock.key().to_string())
    }
    assert_eq!(call::<_, 3>(&locker().await, &7, "s").await.as_deref(), Some("disLock:7:3:s"));
}

#[tokio::test(start_paused = true)]
async fn a_handmade_key_is_taken_as_it_is() {
    const KEY: LockKey = LockKey::from_static("by:hand");

    #[distributed_lock(key = LockKey::new(text)?, locker = locks, guard = lock)]
    async fn computed(locks: &Locker, text: &str) -> Result<String, LockError> {
        Ok(lock.key().to_string())
    }
    let locks = locker().await;
    assert_eq!(key_of!(&locks, [key = KEY]()), "disLock:by:hand");
    assert_eq!(key_of!(&locks, [key = key](key: &LockKey = &KEY)), "disLock:by:hand");
    assert_eq!(computed(&locks, "{tag}:7").await.unwrap(), "disLock:{tag}:7");
    assert!(computed(&locks, "a}").await.unwrap_err().kind() == LockErrorKind::InvalidKey);
}

#[tokio::test(start_paused = true)]
async fn what_resembles_a_hole_may_be_text() {
    #[distributed_lock(key("order:id"), locker = locks, guard = lock)]
    async fn word(locks: &Locker, id: u8) -> Option<String> {
        Some(format!("{id}:{}", lock.key()))
    }
    let locks = locker().await;
    assert_eq!(word(&locks, 7).await.as_deref(), Some("7:disLock:order:id"));
    let signs = key_of!(&locks, [key("order:${id}:#{id}:{{id}}")](id: u8 = 7));
    assert_eq!(signs, "disLock:order:$7:#7:{id}");
}

/// Counts how often it is displayed.
struct Counted<'a>(&'a AtomicU32);

impl Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fetch_add(1, Ordering::Relaxed);
        f.write_str("counted")
    }
}

#[tokio::test(start_paused = true)]
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
    let state = if is_free(locks, "7") { "free" } else { "held" };
    journal.write(format!("asked when {state}"));
    id
}

#[distributed_lock(key("{}", ask(locks, journal, 7).await), locker = locks)]
async fn in_async_fn(locks: &Locker, journal: &Journal) -> Option<()> {
    journal.write("ran");
    Some(())
}

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

#[tokio::test(start_paused = true)]
async fn an_argument_is_awaited_before_the_lock() {
    async fn all(locks: &Locker, journal: &Journal) -> [Option<()>; 3] {
        [
            in_async_fn(locks, journal).await,
            in_boxed_future(locks, journal).await,
            Seventh.in_async_trait(locks, journal).await,
        ]
    }
    let (locks, journal) = (locker().await, Journal::default());
    assert_eq!(all(&locks, &journal).await, [Some(()); 3]);
    assert_eq!(journal.entries(), ["asked when free", "ran"].repeat(3));

    let (_other, journal) = (hold(&locks, "7").await, Journal::default());
    assert_eq!(all(&locks, &journal).await, [None; 3]);
    assert_eq!(journal.entries(), ["asked when held"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_starts_after_an_awaited_argument() {
    #[distributed_lock(key("{}", slow().await), expire = 3, locker = locks, guard = lock)]
    async fn call(locks: &Locker) -> Option<Duration> {
        Some(lock.remaining())
    }
    async fn slow() -> u8 {
        elapse(SECOND * 5).await;
        7
    }
    let remaining = call(&locker().await).await;
    assert!(remaining.is_some_and(|left| left > SECOND * 2), "{remaining:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_mark_in_an_argument_leaves_the_function() {
    #[distributed_lock(key("{}", number?), locker = locks)]
    async fn result(locks: &Locker, number: Result<u8, ShopError>) -> Result<(), ShopError> {
        assert!(!is_free(locks, "7"));
        Ok(())
    }
    #[distributed_lock(key("{}", text.parse::<u8>().ok()?), locker = locks)]
    async fn option(locks: &Locker, text: &str) -> Option<()> {
        assert!(!is_free(locks, "7"));
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
#[tokio::test(start_paused = true)]
async fn different_values_give_different_keys() {
    let locks = locker().await;
    let letters = ["a", ":", "-", "x", "é", "%", "%3A", "{", "}"];
    let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
    let single = letters.into_iter().chain([" ", "\n", "\u{85}"]).map(str::to_owned);
    let values: Vec<String> = single.chain(pairs).collect();
    let mut keys: [BTreeSet<String>; 3] = Default::default();
    for a in &values {
        for b in &values {
            let made = [
                key_of!(&locks, [key = "{a}:{b}"](a: &str = a, b: &str = b)),
                key_of!(&locks, [key("{{t}}{}-x{b}-", a)](a: &str = a, b: &str = b)),
                key_of!(&locks, [key = "{a}é{b}é{a}"](a: &str = a, b: &str = b)),
            ];
            for (keys, key) in keys.iter_mut().zip(made) {
                assert!(!key.contains([' ', '\n', '\u{85}']), "{key:?}");
                assert!(keys.insert(key), "({a:?}, {b:?}) have the key of another pair");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ordinary_values_are_left_alone() {
    let locks = locker().await;
    let key = key_of!(&locks, [key = "{a}-{b}/{c}"]
        (a: &str = "user@example.org_7", b: i64 = -7, c: char = 'ß'));
    assert_eq!(key, "disLock:user@example.org_7--7/ß");
    let key = key_of!(&locks, [key = "{a}-{b}/{c}"](a: &str = "a-b/c", b: i64 = 7, c: char = '/'));
    assert_eq!(key, "disLock:a%2Db/c-7//");
}

#[tokio::test(start_paused = true)]
async fn an_impossible_key_refuses_the_call() {
    #[distributed_lock(key = "order:{id}", locker = locks)]
    async fn call(locks: &Locker, id: &str) -> Result<(), LockError> {
        unreachable!("runs without a lock")
    }
    let locks = locker().await;
    let empty = call(&locks, "").await.unwrap_err();
    assert!(empty.kind() == LockErrorKind::InvalidKey);
    assert!(empty.to_string().contains("the value of `{id}` is empty"), "{empty}");
    assert!(empty.to_string().contains("order:{id}"), "{empty}");
    let long = call(&locks, &"7".repeat(1_024)).await.unwrap_err();
    assert!(long.kind() == LockErrorKind::InvalidKey);
    assert!(long.to_string().contains("1 KiB"), "{long}");
}
