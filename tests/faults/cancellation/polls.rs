//! Futures that are dropped after any number of polls.

use std::future::{Future, poll_fn};
use std::task::Poll;

use lockable_runtime::Locker;
use lockable_tests::Server;
use tokio::task::yield_now;

use crate::support::{Runs, connect, decorated, freed, patient};

#[tokio::test]
async fn a_connected_call_may_be_dropped_at_every_poll() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    at_every_poll(1, async |moment| {
        let outcome = moment.of(locker.lock("k").acquire()).await;
        let is_done = outcome.is_some();
        drop(outcome);
        assert_free(&locker, &server).await;
        is_done
    })
    .await;
}

#[tokio::test]
async fn a_connecting_call_may_be_dropped_at_every_poll() {
    let server = Server::start();
    at_every_poll(2, async |moment| {
        let locker = patient(&server.url()).connect_lazy().unwrap();
        let is_done = moment.of(locker.lock("k").acquire()).await.is_some();
        assert_free(&locker, &server).await;
        is_done
    })
    .await;
}

#[tokio::test]
async fn connecting_may_be_dropped_at_every_poll() {
    let server = Server::start();
    at_every_poll(1, async |moment| {
        let is_done = moment.of(patient(&server.url()).connect()).await.is_some();
        assert_free(&connect(&server.url()).await, &server).await;
        is_done
    })
    .await;
}

#[tokio::test]
async fn a_release_may_be_dropped_at_every_poll() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    at_every_poll(1, async |moment| {
        let guard = locker.lock("k").acquire().await.unwrap();
        let is_done = moment.of(guard.release()).await.is_some();
        assert_free(&locker, &server).await;
        is_done
    })
    .await;
}

#[tokio::test]
async fn a_run_may_be_dropped_at_every_poll() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    at_every_poll(3, async |moment| {
        let body = async {
            yield_now().await;
            yield_now().await;
        };
        let is_done = moment.of(locker.lock("k").run(body)).await.is_some();
        assert_free(&locker, &server).await;
        is_done
    })
    .await;
}

#[tokio::test]
async fn a_decorated_call_may_be_dropped_at_every_poll() {
    let server = Server::start();
    let locker = connect(&server.url()).await;
    at_every_poll(2, async |moment| {
        let is_done = moment.of(decorated(&locker, &Runs::default())).await.is_some();
        assert_free(&locker, &server).await;
        is_done
    })
    .await;
}

/// When a future is dropped.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// Right after this number of polls, before what the last one waits for has come.
    After(usize),
    /// When the next poll would follow, so what the last one waits for is there.
    Before(usize),
}

impl Moment {
    /// The future's output, where it comes before the moment.
    async fn of<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = Box::pin(future);
        let mut polls = 0;
        poll_fn(|cx| {
            if let Self::After(limit) | Self::Before(limit) = self
                && polls == limit
            {
                return Poll::Ready(None);
            }
            polls += 1;
            match future.as_mut().poll(cx) {
                Poll::Pending if matches!(self, Self::After(limit) if polls == limit) => {
                    Poll::Ready(None)
                }
                outcome => outcome.map(Some),
            }
        })
        .await
    }
}

/// Tries every moment until the future is done before it; `least` moments have something to drop.
async fn at_every_poll(least: usize, mut attempt: impl AsyncFnMut(Moment) -> bool) {
    for moment in [Moment::After, Moment::Before] {
        let mut polls = 0;
        while !attempt(moment(polls)).await {
            polls += 1;
        }
        assert!(polls > least, "only {polls} moments");
    }
}

/// The next call finds the lock free at its first try, and later it has no holder.
async fn assert_free(locker: &Locker, server: &Server) {
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    freed(server).await;
}
