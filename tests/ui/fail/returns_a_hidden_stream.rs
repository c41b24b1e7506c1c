use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use lockable_runtime::{LockError, distributed_lock};

struct Rows;

impl Stream for Rows {
    type Item = u8;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u8>> {
        Poll::Ready(None)
    }
}

type Export = Pin<Box<dyn Stream<Item = u8> + Send>>;

#[distributed_lock(key = "k", on_busy = Rows, on_error = |_| Rows)]
async fn alone() -> Rows {
    Rows
}

#[distributed_lock(key = "k")]
async fn in_a_result() -> Result<Rows, LockError> {
    Ok(Rows)
}

#[distributed_lock(key = "k")]
fn alias() -> Option<Export> {
    Some(Box::pin(Rows))
}

fn main() {
    drop((alone(), in_a_result(), alias()));
}
