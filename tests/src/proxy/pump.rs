//! One connection: two pumps, each moving bytes one way.

use std::collections::VecDeque;
use std::future::pending;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{self, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{self, Instant};

use super::control::{Control, Direction};
use super::traffic::ConnectionTraffic;
use super::{Shared, addresses};

/// Carries a connection until both of its directions have ended, or it is cut.
///
/// Without a server to connect to, the client's side is closed at once.
pub(super) async fn carry(client: TcpStream, upstream: SocketAddr, number: usize, shared: Shared) {
    let mut control = shared.control.subscribe();
    tokio::select! {
        () = connect_and_pump(client, upstream, number, &shared) => {}
        _cut = control.wait_for(|control| number < control.cut_below) => {}
    }
    shared.count(number, ConnectionTraffic::close);
}

async fn connect_and_pump(client: TcpStream, upstream: SocketAddr, number: usize, shared: &Shared) {
    if shared.control.borrow().is_turning_away {
        return;
    }
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("every TCP socket has this option");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = Pump { number, direction: Direction::Requests, shared: shared.clone() };
    let replies = Pump { number, direction: Direction::Replies, shared: shared.clone() };
    tokio::join!(requests.run(from_client, to_server), replies.run(from_server, to_client));
}

struct Pump {
    number: usize,
    direction: Direction,
    shared: Shared,
}

impl Pump {
    /// Moves bytes as long as it can, then ends the sink and throws away the rest.
    ///
    /// A direction that has ended leaves the other one alone: a client that is gone does not take
    /// back its requests, and their replies have to go somewhere.
    async fn run(self, mut source: OwnedReadHalf, mut sink: OwnedWriteHalf) {
        // An error means that the peer is gone, so no one is left to report it to.
        drop(self.pump(&mut source, &mut sink).await);
        drop(sink.shutdown().await);
        drop(io::copy(&mut source, &mut io::sink()).await);
    }

    /// Moves bytes until the source has ended and nothing is held back any more.
    async fn pump(&self, source: &mut OwnedReadHalf, sink: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut control = self.shared.control.subscribe();
        // Large enough for what a client writes at once, so that no command comes in pieces.
        let (mut waiting, mut way) = (Vec::with_capacity(1 << 16), Way::default());
        let mut has_ended = false;
        loop {
            let (is_held, is_hung_up) = self.faults(&control.borrow_and_update());
            if !is_held {
                let arrived = waiting.drain(..way.take_arrived()).collect();
                self.pass(sink, arrived).await?;
            }
            self.note_held(waiting.len());
            if is_hung_up || (has_ended && waiting.is_empty()) {
                return Ok(());
            }
            let before = waiting.len();
            tokio::select! {
                // A connection that was reset has ended too.
                read = source.read_buf(&mut waiting), if !has_ended => has_ended = read.unwrap_or(0) == 0,
                _changed = control.changed() => {}
                () = way.arrival(), if !is_held && !waiting.is_empty() => {}
            }
            way.set_out(waiting.len() - before, control.borrow().delay);
            self.note_arrived(&waiting[before..]);
        }
    }

    fn faults(&self, control: &Control) -> (bool, bool) {
        let is_reply = matches!(self.direction, Direction::Replies);
        let holds_answers = is_reply && control.answers_to.is_some_and(|name| self.was_asked(name));
        let is_held = control.hold(self.direction).covers(self.number) || holds_answers;
        (is_held, is_reply && self.number < control.hung_up_below)
    }

    fn was_asked(&self, command: &str) -> bool {
        let traffic = self.shared.traffic.borrow();
        let commands = traffic.connections[self.number].commands();
        let of_shards = command == "SUBSCRIBE" && commands.contains_key("SSUBSCRIBE");
        of_shards || commands.contains_key(command)
    }

    /// Counts replies before they go, so that the client's next command finds them counted.
    async fn pass(&self, sink: &mut OwnedWriteHalf, mut bytes: Vec<u8>) -> io::Result<()> {
        if matches!(self.direction, Direction::Replies) && !bytes.is_empty() {
            self.shared.count(self.number, |connection| connection.replied(&bytes));
            let ports = Arc::clone(&self.shared.control.borrow().ports);
            if !ports.is_empty() {
                addresses::replace(&mut bytes, &ports);
            }
            if self.number < self.shared.control.borrow().cut_off_below {
                sink.write_all(&bytes[..bytes.len() / 2]).await?;
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
        if let (Direction::Requests, Some(name)) =
            (self.direction, self.shared.control.borrow().misspelt)
        {
            misspell(&mut bytes, name);
        }
        sink.write_all(&bytes).await
    }

    fn note_arrived(&self, bytes: &[u8]) {
        if matches!(self.direction, Direction::Requests) && !bytes.is_empty() {
            self.shared.count(self.number, |connection| connection.requested(bytes));
        }
    }

    fn note_held(&self, bytes: usize) {
        self.shared.count_if(self.number, |connection| {
            let is_news = connection.held(self.direction) != bytes;
            connection.set_held(self.direction, bytes);
            is_news
        });
    }
}

/// Changes the last letter of each word that is this name.
fn misspell(bytes: &mut [u8], name: &str) {
    let word = format!("\r\n{name}\r\n").into_bytes();
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(word.len()).position(|window| window == word) {
        from += at + word.len() - 2;
        bytes[from - 1] = b'_';
    }
}

/// When the bytes that wait will have come the long way that the test asked for.
#[derive(Default)]
struct Way(VecDeque<(Instant, usize)>);

impl Way {
    fn set_out(&mut self, bytes: usize, delay: Duration) {
        if bytes > 0 {
            self.0.push_back((Instant::now() + delay, bytes));
        }
    }

    fn take_arrived(&mut self) -> usize {
        let now = Instant::now();
        let count = self.0.iter().take_while(|(arrival, _)| *arrival <= now).count();
        self.0.drain(..count).map(|(_, bytes)| bytes).sum()
    }

    async fn arrival(&self) {
        match self.0.front() {
            Some((arrival, _)) => time::sleep_until(*arrival).await,
            None => pending().await,
        }
    }
}
