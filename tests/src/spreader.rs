//! A proxy that makes one server of several, each with a part of the keys.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::port::Port;
use crate::resp::{Frames, words};
use crate::server::Server;

/// A proxy in front of several servers that sends a command where its first key is, a command without a key to all of
/// them, and `DEL` key by key.
///
/// Commands of a connection are answered one after the other, and only as far as they have one reply
/// each: nothing subscribes here.
#[derive(Debug)]
pub struct Spreader {
    addr: SocketAddr,
    is_closed: Arc<AtomicBool>,
    /// `None` after the drop has joined it.
    thread: Option<JoinHandle<()>>,
    _port: Port,
}

/// From a key to a number, whose remainder is the place of the key's server.
type Hash = fn(&[u8]) -> usize;

impl Spreader {
    /// Starts a proxy that finds the server of a key by this hash.
    pub fn start(servers: &[Server], hash: Hash) -> Self {
        let port = Port::reserve();
        let listener = TcpListener::bind(port.addr()).expect("the port is reserved");
        let servers: Vec<_> = servers.iter().map(Server::addr).collect();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&is_closed);
        let serve = move || {
            for client in listener.incoming().map_while(Result::ok) {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                let servers = servers.clone();
                // It ends when either side closes; that is no fault of the proxy's.
                thread::spawn(move || drop(carry(client, &servers, hash)));
            }
        };
        Self { addr: port.addr(), is_closed, thread: Some(thread::spawn(serve)), _port: port }
    }

    /// The proxy's URL without a user, a password and a database.
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }
}

impl Drop for Spreader {
    /// Ends the listening; open connections end with their clients or servers.
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.addr));
        let outcome = self.thread.take().expect("it is joined once").join();
        assert!(outcome.is_ok() || thread::panicking(), "the proxy panicked");
    }
}

fn carry(mut client: TcpStream, servers: &[SocketAddr], hash: Hash) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut servers: Vec<_> =
        servers.iter().map(|addr| Upstream::connect(*addr)).collect::<Result<_, _>>()?;
    let (mut frames, mut buffer) = (Frames::default(), [0; 1 << 14]);
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        for command in frames.feed(&buffer[..count]) {
            let reply = match &words(&command)[..] {
                [name, keys @ ..] if name.eq_ignore_ascii_case(b"DEL") => {
                    delete(&mut servers, keys, hash)?
                }
                words => match key(words) {
                    Some(key) => {
                        let place = hash(key) % servers.len();
                        servers[place].ask(&command)?
                    }
                    None => ask_all(&mut servers, &command)?,
                },
            };
            client.write_all(&reply)?;
        }
    }
}

/// Each key is deleted at its server, and the reply is the sum of theirs, or an error.
fn delete(servers: &mut [Upstream], keys: &[&[u8]], hash: Hash) -> io::Result<Vec<u8>> {
    let mut count = 0;
    for key in keys {
        let place = hash(key) % servers.len();
        let head = format!("*2\r\n$3\r\nDEL\r\n${}\r\n", key.len());
        match &servers[place].ask(&[head.as_bytes(), key, b"\r\n"].concat())?[..] {
            b":1\r\n" => count += 1,
            b":0\r\n" => {}
            error => return Ok(error.to_vec()),
        }
    }
    Ok(format!(":{count}\r\n").into_bytes())
}

/// The reply is the first one's.
fn ask_all(servers: &mut [Upstream], command: &[u8]) -> io::Result<Vec<u8>> {
    let replies: Result<Vec<_>, _> = servers.iter_mut().map(|server| server.ask(command)).collect();
    Ok(replies?.swap_remove(0))
}

/// The first key of a command, if it has one.
fn key<'a>(words: &[&'a [u8]]) -> Option<&'a [u8]> {
    const WITHOUT: [&str; 9] =
        ["AUTH", "CLIENT", "CLUSTER", "CONFIG", "HELLO", "INFO", "PING", "SCRIPT", "TIME"];
    let name = String::from_utf8_lossy(words.first()?).to_uppercase();
    match name.as_str() {
        "EVAL" | "EVALSHA" => (words.get(2)? != b"0").then(|| words.get(3).copied())?,
        name if WITHOUT.contains(&name) => None,
        _ => words.get(1).copied(),
    }
}

struct Upstream {
    stream: TcpStream,
    replies: Frames,
}

impl Upstream {
    fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, replies: Frames::default() })
    }

    fn ask(&mut self, command: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.write_all(command)?;
        let mut buffer = [0; 1 << 14];
        loop {
            let count = self.stream.read(&mut buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(reply) = self.replies.feed(&buffer[..count]).pop() {
                return Ok(reply);
            }
        }
    }
}
