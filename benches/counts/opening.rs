//! What a new connection sends, before its first lock.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use lockable_benches::Server;
use lockable_runtime::Locker;
use serde::{Deserialize, Serialize};

/// By which connection of a process it is.
pub(crate) type Openings = BTreeMap<String, Sent>;

/// The requests of one connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Those that scripts call are not among them.
    pub(crate) commands: u64,
    pub(crate) bytes: u64,
}

/// A server is another one to the client at each address, and has the scripts already at the second one.
pub(crate) fn all() -> Result<Openings, String> {
    let server = Server::start();
    let url = server.url();
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    count_all(address).map_err(|error| error.to_string())
}

fn count_all(server: &str) -> io::Result<Openings> {
    let [fresh, warm] = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    let runs = [(FRESH, &fresh), (WARM, &warm), (LATER, &warm)];
    runs.map(|(name, door)| Ok((name.to_owned(), sent_by_one(door, server)?))).into_iter().collect()
}

/// One line for each.
pub(crate) fn report(openings: &Openings) -> String {
    let line = |(name, sent): (&String, &Sent)| {
        format!("{name:<52} {:>4} commands, {:>6} bytes", sent.commands, sent.bytes)
    };
    let lines = openings.iter().map(line);
    [HEAD.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

/// Bytes may differ a little: a connection is named by its host and its process.
pub(crate) fn differences(now: &Openings, listed: &Openings) -> Vec<String> {
    let is_other = |(name, sent): &(&String, &Sent)| {
        let listed = listed.get(*name).copied().unwrap_or_default();
        sent.commands != listed.commands || sent.bytes.abs_diff(listed.bytes) > listed.bytes / 50
    };
    let line = |(name, sent): (&String, &Sent)| {
        let listed = listed.get(name).copied().unwrap_or_default();
        format!("{name}: {sent:?}, in the table {listed:?}")
    };
    now.iter().filter(is_other).map(line).collect()
}

/// Of a locker of its own, which opens one connection.
fn sent_by_one(door: &TcpListener, server: &str) -> io::Result<Sent> {
    let url = format!("redis://{}", door.local_addr()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::scope(|scope| {
        let counting = scope.spawn(|| count(door, server));
        let locker = runtime.block_on(Locker::connect(&url));
        // The connection ends with its runtime.
        drop(runtime);
        drop(locker.map_err(io::Error::other)?);
        counting.join().expect("no panic")
    })
}

/// Carries one connection to its end.
fn count(door: &TcpListener, server: &str) -> io::Result<Sent> {
    let (mut client, _) = door.accept()?;
    let mut server = TcpStream::connect(server)?;
    let (mut replies, mut to_client) = (server.try_clone()?, client.try_clone()?);
    let back = thread::spawn(move || io::copy(&mut replies, &mut to_client));
    let mut requests = Vec::new();
    let mut part = [0; 1 << 12];
    loop {
        let length = client.read(&mut part)?;
        if length == 0 {
            break;
        }
        requests.extend_from_slice(&part[..length]);
        server.write_all(&part[..length])?;
    }
    server.shutdown(Shutdown::Both)?;
    drop(back.join());
    let bytes = requests.len().try_into().unwrap_or(u64::MAX);
    Ok(Sent { commands: commands(&requests)?, bytes })
}

/// How many commands there are, each an array of strings.
fn commands(mut requests: &[u8]) -> io::Result<u64> {
    let mut commands = 0;
    while !requests.is_empty() {
        for _ in 0..number(&mut requests)? {
            let length = number(&mut requests)?;
            requests.consume(length + 2);
        }
        commands += 1;
    }
    Ok(commands)
}

/// The number of a line such as `$5`.
fn number(requests: &mut &[u8]) -> io::Result<usize> {
    let mut line = String::new();
    requests.read_line(&mut line)?;
    line.trim_start_matches(['*', '$']).trim_end().parse().map_err(io::Error::other)
}

const HEAD: &str = "\na new connection sends";

const FRESH: &str = "the first of a process, to a fresh server";
const WARM: &str = "the first of a process, to a server with the scripts";
const LATER: &str = "a later one";

#[cfg(test)]
mod tests {
    use super::{Openings, Sent, commands, differences};

    #[test]
    fn commands_are_arrays_of_strings() {
        let requests = b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$5\r\n*1\r\n$\r\n";
        assert_eq!(commands(requests).unwrap(), 2);
    }

    #[test]
    fn one_command_more_is_a_difference_and_one_byte_is_none() {
        let one = |commands, bytes| -> Openings {
            [("a later one".to_owned(), Sent { commands, bytes })].into()
        };
        let listed = one(20, 1_000);
        assert!(differences(&one(20, 1_020), &listed).is_empty());
        for other in [one(21, 1_000), one(20, 1_021), one(20, 979)] {
            assert_eq!(differences(&other, &listed).len(), 1);
        }
    }
}
