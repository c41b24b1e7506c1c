//! Free ports that stay free.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port of 127.0.0.1 that no other test takes as long as this value lives.
///
/// Nothing listens on it while a server is down between two starts, or while a proxy refuses. A UDP
/// socket of the same number reserves it then, against the tests of other processes too.
///
/// The kernel's own choice (port 0) comes from the range of outgoing connections, so any client on
/// the machine could take it meanwhile. These are from below that range, and leave ports for a
/// cluster's bus, which is the port plus 10 000.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _reservation: UdpSocket,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        let mut numbers = (0..COUNT).map(|_| next());
        numbers.find_map(Self::try_reserve).expect("there is a free port on 127.0.0.1")
    }

    /// `None` when another test has reserved it, or another program listens on it.
    fn try_reserve(number: u16) -> Option<Self> {
        let reservation = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        // No socket that listens for a moment: a process that is being started at that moment has a copy of it.
        let is_free = TcpStream::connect((Ipv4Addr::LOCALHOST, number)).is_err();
        is_free.then_some(Self { number, _reservation: reservation })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// Each process starts at another number, and no number comes twice from one process until all have.
fn next() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start = process::id().wrapping_mul(97);
    let offset = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
    FIRST + u16::try_from(offset).expect("the remainder is below COUNT")
}

const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

#[cfg(test)]
mod tests {
    use super::Port;

    #[test]
    fn a_reserved_port_is_not_reserved_twice() {
        let port = Port::reserve();
        assert!(Port::try_reserve(port.addr().port()).is_none());
    }
}
