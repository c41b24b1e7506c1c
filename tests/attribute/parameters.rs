//! Parameters: every pattern, and what becomes of what they own.

use std::cell::Cell;
use std::fmt::Display;

use lockable_runtime::{Locker, distributed_lock};

use crate::support::{Drops, Journal, hold, is_free, locker, pause};

struct Point {
    x: u8,
    y: u8,
}

struct Pair(u8, String);

#[tokio::test]
async fn patterns_bind_names_for_key_and_body() {
    #[distributed_lock(key = "{a}-{b}:{x}:{other}:{p}:{q}:{first}", locker = locks)]
    async fn patterns(
        locks: &Locker,
        (a, b): (u8, u8),
        Point { x, y: other }: Point,
        Pair(p, q): Pair,
        [first, .., last]: [u8; 3],
    ) -> Option<u8> {
        assert!(!is_free(locks, "1-2:3:4:5:six:7").await);
        q.strip_prefix("six").map(|_| a + b + x + other + p + first + last)
    }
    let (point, pair) = (Point { x: 3, y: 4 }, Pair(5, "six".to_owned()));
    assert_eq!(patterns(&locker().await, (1, 2), point, pair, [7, 8, 9]).await, Some(31));
}

#[tokio::test]
async fn references_live_as_long_as_the_call() {
    #[distributed_lock(key = "k:{text}:{number}", locker = locks)]
    async fn refs<'a>(
        locks: &Locker,
        text: &'a str,
        number: &u8,
        log: &mut String,
        bytes: &[u8],
    ) -> Option<&'a str> {
        log.push_str(text);
        pause().await;
        text.get(usize::from(*number)..bytes.len())
    }
    let mut log = String::new();
    let text = "abc".to_owned();
    assert_eq!(refs(&locker().await, &text, &1, &mut log, b"12").await, Some("b"));
    assert_eq!(log, "abc");
}

#[tokio::test]
async fn mutable_parameters_change_after_the_key_was_rendered() {
    #[distributed_lock(key = "k:{count}", locker = locks)]
    async fn counts(locks: &Locker, mut count: u8, mut list: Vec<u8>) -> Option<(u8, usize)> {
        count += 1;
        list.push(count);
        assert!(!is_free(locks, "k:1").await && is_free(locks, "k:2").await);
        Some((count, list.len()))
    }
    assert_eq!(counts(&locker().await, 1, vec![]).await, Some((2, 1)));
}

#[tokio::test]
async fn generic_parameters_and_closures_are_taken() {
    #[distributed_lock(key = "k:{value}:{N}:{shown}", locker = locks)]
    async fn generic<T: Display + Clone, U, const N: usize>(
        locks: &Locker,
        value: &T,
        more: &U,
        shown: impl Display,
        f: impl AsyncFn(u8) -> u8,
    ) -> Option<(T, u8)>
    where
        U: Display + ?Sized,
        for<'x> &'x T: Sized,
    {
        assert!(!is_free(locks, "k:7:3:s").await);
        drop(shown);
        Some((value.clone(), f(u8::try_from(more.to_string().len()).ok()?).await))
    }
    let twice = async |n| 2 * n;
    let got = generic::<_, _, 3>(&locker().await, &7, "abc", "s", twice).await;
    assert_eq!(got, Some((7, 6)));
}

#[tokio::test]
async fn keywords_can_be_names() {
    #[distributed_lock(key = "k:{type}", locker = locks)]
    async fn r#async(locks: &Locker, r#type: u8) -> Option<u8> {
        assert!(!is_free(locks, "k:7").await);
        Some(r#type)
    }
    assert_eq!(r#async(&locker().await, 7).await, Some(7));
}

#[tokio::test]
async fn attributes_on_parameters_stay() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn attributes(
        locks: &Locker,
        #[cfg(any())] gone: Nothing,
        #[expect(unused_variables, reason = "it stays")] unused: u8,
        #[cfg(any())] _gone: Nothing,
    ) -> Option<u8> {
        Some(7)
    }
    assert_eq!(attributes(&locker().await, 1).await, Some(7));
}

#[tokio::test]
async fn values_that_cannot_be_shared_can_still_be_sent() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn not_sync(locks: Locker, cell: Cell<u8>) -> Option<u8> {
        cell.set(cell.get() + 1);
        pause().await;
        Some(cell.get())
    }
    let call = tokio::spawn(not_sync(locker().await, Cell::new(6)));
    assert_eq!(call.await.unwrap(), Some(7));
}

#[tokio::test]
async fn names_of_the_expansion_are_free_for_the_user() {
    #[distributed_lock(
        key = "{call}:{body}:{error}:{guard}:{granted}:{value}",
        on_busy = Some(call + body + error + guard + value + granted),
        locker = locks
    )]
    async fn names(
        locks: &Locker,
        call: u8,
        body: u8,
        error: u8,
        guard: u8,
        value: u8,
        granted: u8,
    ) -> Option<u8> {
        Some(2 * (call + body + error + guard + value + granted))
    }
    let locks = locker().await;
    assert_eq!(names(&locks, 1, 2, 3, 4, 5, 6).await, Some(42));
    let _other = hold(&locks, "1:2:3:4:6:5").await;
    assert_eq!(names(&locks, 1, 2, 3, 4, 5, 6).await, Some(21));
}

/// Each parameter writes down when it is dropped, and whether the lock was held then.
fn three(journal: &Journal, locks: &Locker) -> [Drops; 3] {
    ["first", "second", "third"].map(|name| journal.drops(name).looking_at(locks, "k"))
}

#[tokio::test]
async fn parameters_are_dropped_in_order_before_the_release() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn used(locks: &Locker, first: Drops, _second: Drops, third: Drops) {
        pause().await;
        assert!(first.to_string() < third.to_string());
    }
    #[distributed_lock(key = "k", locker = locks, on_busy = skip, guard = _lock)]
    async fn unused(locks: &Locker, _first: Drops, _second: Drops, _third: Drops) {}

    let (locks, journal) = (locker().await, Journal::default());
    let [first, second, third] = three(&journal, &locks);
    used(&locks, first, second, third).await;
    let [first, second, third] = three(&journal, &locks);
    unused(&locks, first, second, third).await;
    let once = ["third when held", "second when held", "first when held"];
    assert_eq!(journal.entries(), [once, once].concat());
}

#[tokio::test]
async fn a_key_parameter_is_dropped_before_the_release() {
    #[distributed_lock(key = "{permit}", locker = locks)]
    async fn keyed(locks: &Locker, permit: Drops) {}

    let (locks, journal) = (locker().await, Journal::default());
    keyed(&locks, journal.drops("permit").looking_at(&locks, "permit")).await;
    assert_eq!(journal.entries(), ["permit when held"]);
}

/// A body that mentions one field must own the others too.
#[tokio::test]
async fn a_partly_used_parameter_is_dropped_whole() {
    struct Work {
        id: u8,
        _permit: Drops,
    }
    impl Work {
        #[distributed_lock(key = "k", locker = locks)]
        async fn run(self, locks: &Locker) -> Option<u8> {
            pause().await;
            Some(self.id)
        }
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn run(locks: &Locker, work: Work) -> Option<u8> {
        pause().await;
        Some(work.id)
    }
    #[distributed_lock(key = "k", locker = locks)]
    async fn take(locks: &Locker, work: (u8, Drops, Drops)) -> Option<u8> {
        drop(work.2);
        Some(work.0)
    }
    let (locks, journal) = (locker().await, Journal::default());
    let [first, second, third] = three(&journal, &locks);
    assert_eq!(run(&locks, Work { id: 7, _permit: first }).await, Some(7));
    assert_eq!(Work { id: 7, _permit: second }.run(&locks).await, Some(7));
    assert_eq!(take(&locks, (7, third, journal.drops("taken"))).await, Some(7));
    let entries = ["first when held", "second when held", "taken", "third when held"];
    assert_eq!(journal.entries(), entries);
}

#[tokio::test]
async fn an_unnamed_parameter_lives_until_the_call_ends() {
    #[distributed_lock(key = "k", locker = locks)]
    async fn call(locks: &Locker, journal: &Journal, _: Drops, (number, _): (u8, Drops)) {
        pause().await;
        journal.write(format!("the body ended with {number}"));
    }
    let (locks, journal) = (locker().await, Journal::default());
    call(&locks, &journal, journal.drops("unnamed"), (7, journal.drops("unbound"))).await;
    assert_eq!(journal.entries(), ["the body ended with 7", "unbound", "unnamed"]);
}

#[tokio::test]
async fn a_busy_call_drops_its_parameters_without_running() {
    #[distributed_lock(key = "k", locker = locks, on_busy = Some(first.to_string()))]
    async fn call(locks: &Locker, first: Drops, _second: Drops) -> Option<String> {
        drop(first);
        unreachable!()
    }
    let (locks, journal) = (locker().await, Journal::default());
    let other = hold(&locks, "k").await;
    let call = call(&locks, journal.drops("first"), journal.drops("second")).await;
    assert_eq!(call.as_deref(), Some("first"));
    assert_eq!(journal.entries(), ["second", "first"]);
    drop(other);
}

#[tokio::test]
async fn a_parameter_may_be_moved_into_its_key() {
    struct Line {
        number: u8,
    }
    #[distributed_lock(key("{}", number.into_bytes().len()), locker = locks)]
    async fn call(locks: &Locker, number: String, line: Line) -> Option<u8> {
        assert!(!is_free(locks, "3").await);
        Some(line.number)
    }
    assert_eq!(call(&locker().await, "abc".to_owned(), Line { number: 7 }).await, Some(7));
}
