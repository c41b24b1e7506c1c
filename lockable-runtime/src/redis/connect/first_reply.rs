//! The single reply of a server that refuses a connection and closes it: one that is full, for example.
//!
//! Commands that were sent by then cannot be written, and the client library would report that alone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::redis::aio::AsyncStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::redis::fault;

/// A stream that shows its first reply if that is an error with nothing behind it.
pub(crate) struct FirstReply {
    stream: Box<dyn AsyncStream + Send + Unpin>,
    /// What was read, while it may be that error; `None` after any other reply.
    read: Option<Vec<u8>>,
}

const LONGEST: usize = 1_024;

impl FirstReply {
    pub(super) fn of(stream: impl AsyncStream + Send + Unpin + 'static) -> Self {
        Self { stream: Box::new(stream), read: Some(Vec::new()) }
    }

    /// If writing fails, the peer is gone, and reading says more.
    fn written<T>(&self, outcome: io::Result<T>, all: T) -> Poll<io::Result<T>> {
        Poll::Ready(if self.read.is_some() { outcome.or(Ok(all)) } else { outcome })
    }
}

impl AsyncRead for FirstReply {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        let Some(read) = &mut self.read else { return Poll::Ready(outcome) };
        let new = buffer.filled().get(before..).unwrap_or_default();
        if new.is_empty() {
            return Poll::Ready(fault::of_closed(read).map_or(outcome, Err));
        }
        read.extend_from_slice(new);
        if !read.starts_with(b"-") || read.len() > LONGEST {
            self.read = None;
        }
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for FirstReply {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.written(written, bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        self.written(flushed, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
