//! A TCP connection to the first of a host's addresses that accepts one.
//!
//! See "How are the addresses of a host tried, and what does an error say of them?" in DESIGN.md.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::stage::{Progress, Stage};
use crate::core::process::together::first_success;

/// Tries each address after a pause, or once an earlier one has failed.
pub(super) async fn connect<P: Future<Output = ()>>(
    addresses: Vec<SocketAddr>,
    progress: &Progress,
    pause: impl Fn() -> P,
) -> io::Result<TcpStream> {
    progress.reach(Stage::Tcp(BTreeMap::new()), "");
    let attempts = in_turns(addresses).into_iter().map(|address| async move {
        progress.tried(address, "no answer".to_owned());
        let connected = TcpStream::connect(address).await;
        connected.inspect_err(|error| progress.tried(address, error.to_string()))
    });
    first_success(attempts, pause).await.map_err(|last| {
        let kind = last.map_or(io::ErrorKind::NotFound, |error| error.kind());
        io::Error::new(kind, progress.words().0)
    })
}

/// IPv6 and IPv4 in turns: one of them may lead nowhere.
fn in_turns(mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (mut of_four, mut of_six) = (0, 0);
    addresses.sort_by_cached_key(|address| {
        let count = if address.is_ipv4() { &mut of_four } else { &mut of_six };
        *count += 1;
        *count
    });
    addresses
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::net::{Ipv4Addr, TcpListener, TcpStream as Connected};

    use tokio::net::TcpSocket;

    use super::*;

    const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

    fn bound() -> TcpSocket {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(ANY.into()).unwrap();
        socket
    }

    fn swallowing() -> (SocketAddr, (TcpListener, Connected)) {
        let listener = bound().listen(0).unwrap().into_std().unwrap();
        let address = listener.local_addr().unwrap();
        (address, (listener, Connected::connect(address).unwrap()))
    }

    fn parsed(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn an_address_that_swallows_packets_costs_a_pause() {
        let (swallowing, _queue) = swallowing();
        let server = TcpListener::bind(ANY).unwrap();
        let addresses = vec![swallowing, server.local_addr().unwrap()];
        let progress = Progress::default();
        let stream = connect(addresses, &progress, || ready(())).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), server.local_addr().unwrap());
        let (words, _) = progress.words();
        assert!(words.contains(&format!("{swallowing}: no answer")), "{words}");
    }

    #[tokio::test]
    async fn an_address_that_fails_costs_no_pause() {
        let (refusing, server) = (bound(), TcpListener::bind(ANY).unwrap());
        let addresses = vec![refusing.local_addr().unwrap(), server.local_addr().unwrap()];
        let stream = connect(addresses, &Progress::default(), pending::<()>).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), server.local_addr().unwrap());
    }

    #[tokio::test]
    async fn each_address_that_failed_has_its_reason() {
        let (one, other) = (bound(), bound());
        let addresses = [&one, &other].map(|socket| socket.local_addr().unwrap());
        let progress = Progress::default();
        let error = connect(addresses.to_vec(), &progress, pending::<()>).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let words = error.to_string();
        for address in addresses {
            assert!(words.contains(&format!("{address}: Connection refused")), "{words}");
        }
    }

    #[test]
    fn families_take_turns() {
        let found = parsed(&["[::1]:7", "[::2]:7", "[::3]:7", "1.0.0.1:7", "1.0.0.2:7"]);
        let turns = parsed(&["[::1]:7", "1.0.0.1:7", "[::2]:7", "1.0.0.2:7", "[::3]:7"]);
        assert_eq!(in_turns(found), turns);
        let found = parsed(&["1.0.0.1:7", "[::1]:7", "[::2]:7"]);
        assert_eq!(in_turns(found.clone()), found);
        assert_eq!(in_turns(Vec::new()), []);
    }
}
