use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::thread;

use tokio::task::yield_now;

use super::*;

fn current() -> String {
    RequestId::current().map_or_else(String::new, |id| id.to_string())
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn ids_and_scopes_go_anywhere() {
    fn sendable<T: Send + Sync>(_: &T) {}
    let id = RequestId::new("a");
    sendable(&id);
    sendable(&id.scope(async {}));
    let local = id.scope(async { Rc::new(7) });
    assert_eq!(poll_once(pin!(local)), Poll::Ready(Rc::new(7)));
}

#[test]
fn printable_ascii_stays_as_it_is() {
    let all: String = ('!'..='~').collect();
    assert_eq!(RequestId::new(&all).as_str(), all);
    assert_eq!(RequestId::new("a b").as_str(), "a b");
    assert_eq!(format!("{:>3}", RequestId::new("a")), "  a");
}

#[test]
fn everything_else_becomes_an_underscore() {
    let cleaned = |text: &str| RequestId::new(text).as_str().to_owned();
    assert_eq!(cleaned("a\r\nSet-Cookie: b"), "a__Set-Cookie: b");
    assert_eq!(cleaned("a\tb\0c\x7fd\u{85}e"), "a_b_c_d_e");
    assert_eq!(cleaned("é"), "_");
    assert_eq!(cleaned("漢\u{202e}字"), "___");
}

#[test]
fn white_space_is_trimmed_also_after_the_cut() {
    assert_eq!(RequestId::new("\r\n\t a \u{a0}").as_str(), "a");
    let cut = format!("{}   b", "a".repeat(MAX_LENGTH - 2));
    assert_eq!(RequestId::new(cut).as_str(), "a".repeat(MAX_LENGTH - 2));
}

#[test]
fn a_long_text_is_cut() {
    let longest = "a".repeat(MAX_LENGTH);
    assert_eq!(RequestId::new(&longest).as_str(), longest);
    assert_eq!(RequestId::new(format!("{longest}b")).as_str(), longest);
    assert_eq!(RequestId::new("é".repeat(1 << 20)).as_str(), "_".repeat(MAX_LENGTH));
}

#[test]
fn a_text_of_nothing_gives_a_generated_id() {
    for text in ["", " ", "\r\n\t", "\u{a0}\u{3000}"] {
        assert_eq!(RequestId::new(text).as_str().split_once('-').unwrap().0.len(), 16);
    }
}

#[test]
fn generated_ids_differ_and_are_clean() {
    let ids: HashSet<_> = (0..1000).map(|_| RequestId::generate()).collect();
    assert_eq!(ids.len(), 1000);
    assert!(ids.iter().all(|id| RequestId::new(id) == *id));
}

#[test]
fn scopes_nest_and_restore_the_outer_one() {
    let (outer, inner) = (RequestId::new("outer"), RequestId::new("inner"));
    assert_eq!(current(), "");
    outer.sync_scope(|| {
        assert_eq!(current(), "outer");
        assert_eq!(inner.sync_scope(current), "inner");
        let panics = || inner.sync_scope(|| panic!("on purpose"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(current(), "outer");
    });
    assert_eq!(current(), "");
}

#[tokio::test]
async fn scopes_of_futures_nest_and_restore_the_outer_one() {
    let outer = RequestId::new("outer").scope(async {
        let inner = RequestId::new("inner").scope(async {
            yield_now().await;
            RequestId::new("innermost").sync_scope(current) + &current()
        });
        (inner.await, current())
    });
    assert_eq!(outer.await, ("innermostinner".to_owned(), "outer".to_owned()));
    assert_eq!(current(), "");
}

#[tokio::test]
async fn futures_that_share_a_thread_keep_their_ids() {
    async fn reads_twice() -> (String, String) {
        let first = current();
        yield_now().await;
        (first, current())
    }
    let (a, b) = (RequestId::new("a"), RequestId::new("b"));
    let (a, none, b) = tokio::join!(a.scope(reads_twice()), reads_twice(), b.scope(reads_twice()));
    let twice = |id: &str| (id.to_owned(), id.to_owned());
    assert_eq!((a, none, b), (twice("a"), twice(""), twice("b")));
}

#[test]
fn a_dropped_future_sees_its_id_to_the_end() {
    struct Reads<'a>(&'a Cell<String>);
    impl Drop for Reads<'_> {
        fn drop(&mut self) {
            self.0.set(current());
        }
    }
    let seen = Cell::default();
    let reads = Reads(&seen);
    let mut scope = Box::pin(RequestId::new("a").scope(async move {
        yield_now().await;
        drop(reads);
    }));
    assert!(poll_once(scope.as_mut()).is_pending());
    assert_eq!((current(), seen.take()), (String::new(), String::new()));
    drop(scope);
    assert_eq!((current(), seen.take()), (String::new(), "a".to_owned()));
}

#[tokio::test]
async fn spawned_work_has_only_the_id_carried_over() {
    let id = RequestId::new("a");
    id.scope(async {
        assert_eq!(tokio::spawn(async { current() }).await.unwrap(), "");
        assert_eq!(tokio::task::spawn_blocking(current).await.unwrap(), "");
        assert_eq!(thread::spawn(current).join().unwrap(), "");
        let carried = RequestId::current().unwrap();
        assert_eq!(tokio::spawn(carried.scope(async { current() })).await.unwrap(), "a");
        let blocking = move || carried.sync_scope(current);
        assert_eq!(tokio::task::spawn_blocking(blocking).await.unwrap(), "a");
    })
    .await;
}
