//! Futures that are polled at the same time, in one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// What the first of the two gives that is ready; `one` is polled first.
///
/// Both are pinned by the caller: a future that is moved in here would take its space twice.
pub(crate) fn first_of<T>(
    mut one: Pin<&mut impl Future<Output = T>>,
    mut other: Pin<&mut impl Future<Output = T>>,
) -> impl Future<Output = T> {
    poll_fn(move |cx| match one.as_mut().poll(cx) {
        Poll::Pending => other.as_mut().poll(cx),
        ready @ Poll::Ready(_) => ready,
    })
}

/// The values of these futures, in their order, once all are there.
pub(crate) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|cx| {
        for (future, value) in running.iter_mut().filter(|(_, value)| value.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(cx) {
                *value = Some(ready);
            }
        }
        if running.iter().all(|(_, value)| value.is_some()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    running.into_iter().filter_map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn values_are_in_the_order_of_their_futures() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let late = async move { receiver.await.unwrap() };
        let early = async move {
            sender.send(1).unwrap();
            2
        };
        let both: [Pin<Box<dyn Future<Output = u8>>>; 2] = [Box::pin(late), Box::pin(early)];
        assert_eq!(join_all(both).await, [1, 2]);
    }
}
