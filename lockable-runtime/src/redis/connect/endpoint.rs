use std::fmt;

use crate::core::text::escape::escaped;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    pub(crate) fn has_port(&self) -> bool {
        self.port > 0
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&host_and_port(&self.host, self.port))
    }
}

/// An IPv6 address is in brackets, so that its last colon is not the port's. A host that a Sentinel names may be any
/// text.
fn host_and_port(host: &str, port: u16) -> String {
    let host = escaped(host);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_others_moves_no_cursor() {
        assert_eq!(host_and_port("a\u{1b}[2J", 1), r"a\u{1b}[2J:1");
        assert_eq!(host_and_port("::1", 1), "[::1]:1");
    }
}
