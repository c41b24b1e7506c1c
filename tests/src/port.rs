//! Free ports that stay free.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port of 127.0.0.1 that no socket listens on at this moment.
pub(crate) fn free() -> u16 {
    listen().local_addr().expect("a bound socket has an address").port()
}

/// A socket that listens on such a port.
///
/// The kernel's own choice (port 0) comes from the range of outgoing connections, so any client on
/// the machine could take it while its server is down between two starts. These are from below that
/// range, and leave ports for a cluster's bus, which is the port plus 10 000.
pub(crate) fn listen() -> TcpListener {
    let mut sockets = (0..COUNT).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, next())));
    sockets.find_map(Result::ok).expect("there is a free port on 127.0.0.1")
}

/// Each process starts somewhere else, and no port comes twice from one process until all have.
fn next() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start = process::id().wrapping_mul(97);
    let offset = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
    FIRST + u16::try_from(offset).expect("the remainder is below COUNT")
}

const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;
