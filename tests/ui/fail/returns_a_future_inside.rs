use std::future::{Future, Ready, ready};
use std::pin::Pin;

use lockable_runtime::{LockError, distributed_lock};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

type Reply = Pin<Box<dyn Future<Output = u8> + Send>>;
type Work = Box<dyn Future<Output = u8>>;
type Shop<T> = Result<T, LockError>;

#[distributed_lock(key = "k")]
async fn task() -> Result<JoinHandle<u8>, LockError> {
    Ok(tokio::spawn(ready(1)))
}

#[distributed_lock(key = "k")]
fn answer() -> Option<tokio::sync::oneshot::Receiver<u8>> {
    Some(oneshot::channel().1)
}

#[distributed_lock(key = "k")]
async fn alias() -> Shop<Reply> {
    Ok(Box::pin(ready(1)))
}

#[distributed_lock(key = "k")]
fn not_pinned() -> Result<Work, LockError> {
    Ok(Box::new(ready(1)))
}

#[distributed_lock(key = "k")]
async fn generic<F: Future>(future: F) -> Option<F> {
    Some(future)
}

#[distributed_lock(key = "k", on_busy = ready(1), on_error = |_| ready(2))]
async fn alone() -> Ready<u8> {
    ready(3)
}

#[distributed_lock(key = "k")]
fn of_boxed() -> Pin<Box<dyn Future<Output = Option<Ready<u8>>>>> {
    Box::pin(async { Some(ready(1)) })
}

fn main() {
    drop((task(), answer(), alias(), not_pinned()));
    drop((generic(ready(1)), alone(), of_boxed()));
}
