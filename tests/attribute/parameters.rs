//! Parameters: every pattern, and what becomes of what they own.

use lockable_runtime::{Locker, distributed_lock};

use crate::support::{Drops, Journal, hold, is_free, locker, pause};

struct Point {
    x: u8,
    y: u8,
}

struct Pair(u8, String);

#[tokio::test(start_paused = true)]
async fn patterns_bind_names_for_key_and_body() {
    #[distributed_lock(key = "{a}-{b}:{x}:{other}:{p}:{q}:{first}", locker = locks)]
    async fn patterns(
        locks: &Locker,
        (a, b): (u8, u8),
        Point { x, y: other }: Point,
        Pair(p, q): Pair,
        [first, .., last]: [u8; 3],
    ) -> Option<u8> {
        assert!(!is_free(locks, "1-2:3:4:5:six:7"));
        q.strip_prefix("six").map(|_| a + b + x + other + p + first + last)
    }
    let (point, pair) = (Point { x: 3, y: 4 }, Pair(5, "six".to_owned()));
    assert_eq!(patterns(&locker().await, (1, 2), point, pair, [7, 8, 9]).await, Some(31));
}

#[tokio::test(start_paused = true)]
async fn mutable_parameters_change_after_the_key_was_rendered() {
    #[distributed_lock(key = "k:{count}", locker = locks)]
    async fn counts(locks: &Locker, mut count: u8, mut list: Vec<u8>) -> Option<(u8, usize)> {
        count += 1;
        list.push(count);
        assert!(!is_free(locks, "k:1") && is_free(locks, "k:2"));
        Some((count, list.len()))
    }
    assert_eq!(counts(&locker().await, 1, vec![]).await, Some((2, 1)));
}

/// Each parameter writes down when it is dropped, and whether the lock was held then.
fn three(journal: &Journal, locks: &Locker) -> [Drops; 3] {
    ["first", "second", "third"].map(|name| journal.drops(name).looking_at(locks, "k"))
}

/// Asserts that a decorated function drops its parameters as a plain one does, and under its lock.
macro_rules! assert_drops_as_a_plain_function {
    ([$($async:tt)?] [$($await:tt)*] $pause:expr) => {{
        $($async)? fn plain(first: Drops, (_second, third): (Drops, Drops)) {
            $pause;
            assert!(first.to_string() < third.to_string());
        }
        #[distributed_lock(key = "k", locker = locks)]
        $($async)? fn locked(locks: &Locker, first: Drops, (_second, third): (Drops, Drops)) {
            $pause;
            assert!(first.to_string() < third.to_string());
        }
        let (locks, there, here) = (locker().await, Journal::default(), Journal::default());
        let [first, second, third] = three(&there, &locks);
        plain(first, (second, third))$($await)*;
        let [first, second, third] = three(&here, &locks);
        locked(&locks, first, (second, third))$($await)*;
        let order = there.entries().into_iter().map(|entry| entry.replace("free", "held"));
        assert_eq!(here.entries(), order.collect::<Vec<_>>());
    }};
}

#[tokio::test(start_paused = true)]
async fn parameters_are_dropped_in_order_before_the_release() {
    assert_drops_as_a_plain_function!([async] [.await] pause().await);
    assert_drops_as_a_plain_function!([] [] std::thread::yield_now());
}

#[tokio::test(start_paused = true)]
async fn unmentioned_parameters_are_dropped_before_the_release() {
    #[distributed_lock(key = "{permit}", locker = locks, on_busy = skip, guard = _lock)]
    async fn call(locks: &Locker, permit: Drops, _first: Drops, _second: Drops) {}

    let (locks, journal) = (locker().await, Journal::default());
    let drops = |name| journal.drops(name).looking_at(&locks, "permit");
    call(&locks, drops("permit"), drops("first"), drops("second")).await;
    assert_eq!(journal.entries(), ["second when held", "first when held", "permit when held"]);
}

/// A body that mentions one field must own the others too.
#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn a_parameter_may_be_moved_into_its_key() {
    struct Line {
        number: u8,
    }
    #[distributed_lock(key("{}", number.into_bytes().len()), locker = locks)]
    async fn call(locks: &Locker, number: String, line: Line) -> Option<u8> {
        assert!(!is_free(locks, "3"));
        Some(line.number)
    }
    assert_eq!(call(&locker().await, "abc".to_owned(), Line { number: 7 }).await, Some(7));
}
