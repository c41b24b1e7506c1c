//! One end of the socket pair between `lockable` and its watcher.

use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::net;
use std::str::FromStr;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

pub(crate) struct Channel {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: net::UnixStream,
}

impl Channel {
    pub(crate) fn new(stream: net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let writer = stream.try_clone()?;
        let (reader, unused) = UnixStream::from_std(stream)?.into_split();
        // Its drop would end the stream in this direction.
        unused.forget();
        Ok(Self { lines: BufReader::new(reader).lines(), writer })
    }

    /// Sends a message without waiting for room: who waits for the other end cannot act without it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the other end has not read for long; another kind when it is gone,
    /// which its reader finds too.
    pub(crate) fn send(&mut self, message: impl Display) -> io::Result<()> {
        let message = message.to_string();
        match self.writer.write(message.as_bytes()) {
            Ok(written) if written == message.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        }
    }

    /// The next message; `None` when the other end is gone.
    ///
    /// # Cancel safety
    /// No part of a message is lost.
    pub(crate) async fn next<T: FromStr>(&mut self) -> Option<T> {
        self.lines.next_line().await.ok().flatten()?.parse().ok()
    }
}
