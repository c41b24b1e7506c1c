use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// The output of the first of the two that is ready; `one` is polled first.
///
/// The caller pins both: a future that is moved in here would take its space twice.
pub(crate) fn first_of<T>(
    mut one: Pin<&mut impl Future<Output = T>>,
    mut other: Pin<&mut impl Future<Output = T>>,
) -> impl Future<Output = T> {
    poll_fn(move |cx| match one.as_mut().poll(cx) {
        Poll::Pending => other.as_mut().poll(cx),
        ready @ Poll::Ready(_) => ready,
    })
}

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

/// The value of the first attempt that succeeds; the error of the last that fails if none does, if there are any.
///
/// Each attempt begins a pause after the one before it, or once one has failed. When one succeeds, the others are
/// dropped.
pub(crate) async fn first_success<T, E, P: Future<Output = ()>>(
    attempts: impl ExactSizeIterator<Item = impl Future<Output = Result<T, E>>>,
    pause: impl Fn() -> P,
) -> Result<T, Option<E>> {
    let mut waiting = attempts.map(Box::pin);
    let mut running = Vec::new();
    let mut last = None;
    loop {
        running.extend(waiting.next());
        if running.is_empty() {
            return Err(last);
        }
        let mut pause = pin!(pause());
        let ended = poll_fn(|cx| {
            for (number, attempt) in running.iter_mut().enumerate() {
                if let Poll::Ready(outcome) = attempt.as_mut().poll(cx) {
                    return Poll::Ready(Some((number, outcome)));
                }
            }
            match waiting.len() {
                0 => Poll::Pending,
                _ => pause.as_mut().poll(cx).map(|()| None),
            }
        });
        let Some((number, outcome)) = ended.await else { continue };
        match outcome {
            Ok(value) => return Ok(value),
            Err(error) => last = Some(error),
        }
        drop(running.swap_remove(number));
    }
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

    #[tokio::test]
    async fn all_attempts_run_while_none_has_ended() {
        let (begun, mut starts) = tokio::sync::mpsc::unbounded_channel();
        let attempts = (0..3).map(|number| {
            let begun = begun.clone();
            async move {
                begun.send(number).unwrap();
                if number < 2 { std::future::pending().await } else { Ok::<_, ()>(number) }
            }
        });
        // No pause lasts, so that the first poll reaches the last attempt.
        let mut first = pin!(first_success(attempts, || std::future::ready(())));
        let polled = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx))).await;
        assert_eq!(polled, Poll::Ready(Ok(2)));
        let order = [starts.recv().await, starts.recv().await, starts.recv().await];
        assert_eq!(order, [Some(0), Some(1), Some(2)]);
    }

    #[tokio::test]
    async fn the_next_attempt_begins_when_one_fails() {
        let attempts = (0..3).map(|number| std::future::ready(Err::<(), _>(number)));
        assert_eq!(first_success(attempts, std::future::pending).await, Err(Some(2)));
        let none = std::iter::empty::<std::future::Ready<Result<(), ()>>>();
        assert_eq!(first_success(none, std::future::pending).await, Err(None));
    }
}
