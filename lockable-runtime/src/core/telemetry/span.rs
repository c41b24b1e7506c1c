use std::future::{Future, poll_fn};
use std::pin::Pin;

use tracing::Span;

pub(super) const TARGET: &str = "lockable";

/// Polls the future inside of the span without moving it, which would copy it.
pub(crate) async fn inside<F: Future>(span: &Span, mut future: Pin<&mut F>) -> F::Output {
    poll_fn(|cx| span.in_scope(|| future.as_mut().poll(cx))).await
}
