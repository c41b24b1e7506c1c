//! Futures that are dropped after any number of polls.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use lockable_runtime::Locker;
use lockable_tests::Server;
use rstest::rstest;
use tokio::task::yield_now;

use crate::runtimes::pair;
use crate::support::{Runs, decorated, freed};
use crate::waiting::support::{ample, connect, server_and_locker};

type Call = Pin<Box<dyn Future<Output = ()>>>;

/// The first call of a locker connects.
#[rstest]
#[case::a_pair(pairs)]
#[case::a_run(runs)]
#[case::a_decorated_call(calls)]
#[tokio::test]
async fn a_call_may_be_dropped_at_every_poll(
    #[case] call: fn(Locker) -> Call,
    #[values(false, true)] is_connected: bool,
) {
    let (server, connected) = server_and_locker().await;
    at_every_poll(2, async |moment| {
        let cold = ample(&server.url()).connect_lazy().unwrap();
        let locker = if is_connected { connected.clone() } else { cold };
        let outcome = moment.of(call(locker.clone())).await;
        leaves_nothing(outcome, &server, &locker).await
    })
    .await;
}

fn pairs(locker: Locker) -> Call {
    Box::pin(async move {
        pair(&locker).await;
    })
}

fn runs(locker: Locker) -> Call {
    let body = async {
        yield_now().await;
        yield_now().await;
    };
    Box::pin(async move { locker.lock("k").run(body).await.unwrap() })
}

fn calls(locker: Locker) -> Call {
    Box::pin(async move { assert_eq!(decorated(&locker, &Runs::default()).await.unwrap(), 1) })
}

#[tokio::test]
async fn connecting_may_be_dropped_at_every_poll() {
    let server = Server::start();
    at_every_poll(1, async |moment| {
        let outcome = moment.of(ample(&server.url()).connect()).await;
        leaves_nothing(outcome, &server, &connect(&server.url()).await).await
    })
    .await;
}

/// When a future is dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// Right after this number of polls, before what the last one waits for has come.
    After(usize),
    /// When the next poll would follow, so what the last one waits for is there.
    Before(usize),
}

impl Moment {
    /// The future's output, where it comes before the moment.
    pub(crate) async fn of<F: Future>(self, future: F) -> Option<F::Output> {
        let (Self::After(limit) | Self::Before(limit)) = self;
        let mut future = Box::pin(future);
        let mut polls = 0;
        poll_fn(|cx| {
            if polls == limit {
                return Poll::Ready(None);
            }
            polls += 1;
            match future.as_mut().poll(cx) {
                Poll::Pending if polls == limit && matches!(self, Self::After(_)) => {
                    Poll::Ready(None)
                }
                outcome => outcome.map(Some),
            }
        })
        .await
    }
}

/// Tries every moment until the future is done before it; more than `least` moments have something to drop.
pub(crate) async fn at_every_poll(least: usize, mut attempt: impl AsyncFnMut(Moment) -> bool) {
    for moment in [Moment::After, Moment::Before] {
        let mut polls = 0;
        while !attempt(moment(polls)).await {
            polls += 1;
        }
        assert!(polls > least, "only {polls} moments");
    }
}

/// The next call finds the lock free at its first try, and later it has no holder. Whether the call has come to
/// its end.
async fn leaves_nothing<T>(outcome: Option<T>, server: &Server, locker: &Locker) -> bool {
    let is_done = outcome.is_some();
    drop(outcome);
    locker.lock("k").acquire().await.unwrap().release().await.unwrap();
    freed(server).await;
    is_done
}
