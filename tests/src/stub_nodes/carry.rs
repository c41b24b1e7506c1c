//! One connection through a stub node.

use std::future::pending;
use std::io;
use std::mem;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::disorder::Garbled;
use super::plan::Fate;
use super::{StubNode, locked};
use crate::resp::{Frames, is_push, words};

impl StubNode {
    pub(super) async fn serve(self, listener: TcpListener) {
        while let Ok((client, _)) = listener.accept().await {
            let stub_node = self.clone();
            // It ends when either side closes; that is no fault of the stub node's.
            tokio::spawn(async move { drop(stub_node.carry(client).await) });
        }
    }

    async fn carry(self, client: TcpStream) -> io::Result<()> {
        let server = TcpStream::connect(self.server).await?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let replies = Replies { from_server, to_client, frames: Frames::default() };
        let (passing, awaited, is_asking) = Default::default();
        let carried = Carried { stub_node: self, to_server, replies, passing, awaited, is_asking };
        carried.run(from_client).await
    }
}

struct Carried {
    stub_node: StubNode,
    to_server: OwnedWriteHalf,
    replies: Replies,
    /// Commands that go to the server together, and how many of them it answers.
    passing: Vec<u8>,
    awaited: usize,
    /// The last command was `ASKING`.
    is_asking: bool,
}

/// What comes back.
struct Replies {
    from_server: OwnedReadHalf,
    to_client: OwnedWriteHalf,
    frames: Frames,
}

impl Carried {
    async fn run(mut self, mut from_client: OwnedReadHalf) -> io::Result<()> {
        let (mut commands, mut bytes) = (Frames::default(), Vec::with_capacity(1 << 14));
        loop {
            tokio::select! {
                read = from_client.read_buf(&mut bytes) => {
                    if read? == 0 {
                        return Ok(());
                    }
                    for command in commands.feed(&bytes) {
                        self.take(&command).await?;
                    }
                    self.pass().await?;
                    bytes.clear();
                }
                frames = self.replies.next() => {
                    let garbled = locked(&self.stub_node.plan).messages(&frames?);
                    self.replies.give(garbled).await?;
                }
            }
        }
    }

    async fn take(&mut self, command: &[u8]) -> io::Result<()> {
        let words =
            words(command).into_iter().map(|word| String::from_utf8_lossy(word).into_owned());
        let words: Vec<_> = words.collect();
        let name = words.first().map(|name| name.to_uppercase()).unwrap_or_default();
        let stub_node = self.stub_node.number;
        let fate = locked(&self.stub_node.plan).fate(stub_node, words, self.is_asking);
        self.is_asking = name == "ASKING";
        if !matches!(fate, Fate::Passes) {
            self.pass().await?;
        }
        // Subscriptions are answered by messages, of which any number comes.
        let subscribes = name.ends_with("SUBSCRIBE");
        match fate {
            Fate::Passes => {
                self.passes(command, subscribes);
                Ok(())
            }
            Fate::Held(hold) => {
                hold.pass().await;
                self.passes(command, subscribes);
                Ok(())
            }
            Fate::Answered(reply) => self.replies.to_client.write_all(&reply).await,
            Fate::AnsweredLate(reply, told) => {
                told.notified().await;
                self.replies.to_client.write_all(&reply).await
            }
            Fate::Garbled(garble) => {
                self.to_server.write_all(command).await?;
                let reply = self.replies.take_one(subscribes).await?;
                self.replies.to_client.write_all(&garble.of(&reply)).await?;
                if garble.ends() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
            }
            Fate::Disordered(disorder, dice) => {
                self.to_server.write_all(command).await?;
                let reply = self.replies.take_one(subscribes).await?;
                self.replies.give(disorder.of(dice, &reply)).await
            }
            Fate::Given(garbled) => self.replies.give(garbled).await,
            Fate::BreaksBefore => Err(io::ErrorKind::ConnectionReset.into()),
            Fate::BreaksAfter => {
                self.to_server.write_all(command).await?;
                self.replies.take_one(subscribes).await?;
                Err(io::ErrorKind::ConnectionReset.into())
            }
            Fate::Silent => pending().await,
        }
    }

    fn passes(&mut self, command: &[u8], subscribes: bool) {
        self.passing.extend_from_slice(command);
        self.awaited += usize::from(!subscribes);
    }

    /// Passes the commands on that wait for it, and their replies.
    async fn pass(&mut self) -> io::Result<()> {
        self.to_server.write_all(&mem::take(&mut self.passing)).await?;
        self.replies.pass_some(mem::take(&mut self.awaited)).await
    }
}

impl Replies {
    /// Passes this count of replies of the server's on, with the messages that come before them.
    async fn pass_some(&mut self, count: usize) -> io::Result<()> {
        let mut passed = 0;
        while passed < count {
            let frames = self.next().await?;
            self.pass(&frames).await?;
            passed += frames.iter().filter(|frame| !is_push(frame)).count();
        }
        Ok(())
    }

    async fn pass(&mut self, frames: &[Vec<u8>]) -> io::Result<()> {
        self.to_client.write_all(&frames.concat()).await
    }

    async fn give(&mut self, garbled: Garbled) -> io::Result<()> {
        self.to_client.write_all(&garbled.bytes).await?;
        if garbled.ends { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }

    /// Takes the server's reply, which may be a message, and passes nothing on.
    async fn take_one(&mut self, is_message: bool) -> io::Result<Vec<u8>> {
        loop {
            let mut replies = self.next().await?.into_iter();
            if let Some(reply) = replies.find(|frame| is_message || !is_push(frame)) {
                return Ok(reply);
            }
        }
    }

    /// What has come.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    async fn next(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut bytes = Vec::with_capacity(1 << 14);
        if self.from_server.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.frames.feed(&bytes))
    }
}
