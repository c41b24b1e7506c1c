//! What is between this machine and the server: locks need one that leads to the same server always,
//! and that breaks when it leads to another.
//!
//! See "How does the check find a proxy?" in DESIGN.md.

use std::net::IpAddr;

use ::redis::{ConnectionAddr, FromRedisValue, Pipeline, Value};
use tokio::net::lookup_host;

use super::{Checked, Finding};
use crate::backend::redis::wire::connection::Opener;
use crate::backend::redis::wire::server::told;
use crate::check::{Code, Severity};
use crate::types::clock::{timer_on, within};

/// Looks at two connections, as far as the user may; nothing is known where it may not.
pub(super) async fn look(server: &Checked<'_>) -> Result<Option<Finding>, Finding> {
    let end = End::of(server).await?;
    if end.is_unknown() {
        return Ok(None);
    }
    let other = Checked::connect(server.opener).await?;
    let other = End::of(&other).await?;
    Ok(match apart(&end, &other) {
        Some(finding) => Some(finding),
        None => translated(server.opener, end.address.as_deref()).await,
    })
}

/// What the server says of its end of a connection.
#[derive(Debug, Default)]
struct End {
    /// Where it was connected to, in the server's words.
    address: Option<String>,
    /// The number of the connection, which the server gives once.
    number: Option<String>,
    /// Drawn by the server when it started.
    run: Option<String>,
}

impl End {
    async fn of(server: &Checked<'_>) -> Result<Self, Finding> {
        let mut pipeline = Pipeline::with_capacity(3);
        pipeline.cmd("HELLO").cmd("CLIENT").arg("INFO").cmd("INFO").arg("server");
        let replies = server.call(&pipeline).await?;
        let [hello, client, info] = &replies[..] else { return Ok(Self::default()) };
        let text = |reply: &Value| String::from_redis_value_ref(reply).unwrap_or_default();
        let (client, info) = (text(client), text(info));
        let of_client = |name| client.split_whitespace().find_map(|field| field.strip_prefix(name));
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        Ok(Self {
            address: of_client("laddr=").map(str::to_owned),
            number: told(hello, "id").or_else(|| of_client("id=").map(str::to_owned)),
            run: run.map(|run| run.trim().to_owned()),
        })
    }

    fn is_unknown(&self) -> bool {
        self.address.is_none() && self.number.is_none() && self.run.is_none()
    }
}

/// Two connections that do not end apart, or not at one server.
fn apart(one: &End, other: &End) -> Option<Finding> {
    if one.run.is_some() && other.run.is_some() && one.run != other.run {
        let matter = "two connections to this address led to two servers, which do not know each \
                      other's locks";
        return Some(between(Severity::Wrong, matter.to_owned(), ONE_SERVER));
    }
    let is_shared = one.number.is_some() && one.number == other.number;
    is_shared.then(|| {
        let matter = "two connections to this address are one at the server: a proxy shares its own \
                      among its clients, and may lead one to another server without breaking ours";
        between(Severity::Risky, matter.to_owned(), DIRECT)
    })
}

/// A server that was connected to at another address than that of the URL.
async fn translated(opener: &Opener, address: Option<&str>) -> Option<Finding> {
    // The server writes a question mark where it does not know.
    let (ip, port) = address?.rsplit_once(':').filter(|(ip, _)| *ip != "?")?;
    let (ConnectionAddr::Tcp(host, expected) | ConnectionAddr::TcpTls { host, port: expected, .. }) =
        opener.client.get_connection_info().addr()
    else {
        return None;
    };
    let is_other = match ip.trim_matches(['[', ']']).parse() {
        _ if *port != *expected.to_string() => true,
        Ok(ip) => is_elsewhere(ip, &addresses(opener, host, *expected).await),
        Err(_) => false,
    };
    is_other.then(|| {
        let matter = format!(
            "a proxy, or a translation of addresses, seems to be between: the server was connected to \
             at {ip}:{port}. A proxy that keeps our connections while it goes over to another server \
             hides that from us: fencing tokens can repeat then, and leases are not looked at again"
        );
        between(Severity::Note, matter, DIRECT)
    })
}

/// Whether none of the addresses of a host is that one; nothing is known where one stands for all.
fn is_elsewhere(ip: IpAddr, addresses: &[IpAddr]) -> bool {
    let is_it =
        |other: &IpAddr| other.is_unspecified() || other.to_canonical() == ip.to_canonical();
    !addresses.is_empty() && !addresses.iter().any(is_it)
}

/// The addresses of a host; none where they are not known in time.
async fn addresses(opener: &Opener, host: &str, port: u16) -> Vec<IpAddr> {
    let timer = || timer_on(&opener.timers, opener.connect_deadline);
    match within(timer, lookup_host((host, port))).await {
        Some(Ok(found)) => found.map(|address| address.ip()).collect(),
        _ => Vec::new(),
    }
}

fn between(severity: Severity, matter: String, advice: &'static str) -> Finding {
    Finding::new(severity, Code::Proxy, matter, advice)
}

const ONE_SERVER: &str = "put an address into the URL that leads to one server, the primary";

const DIRECT: &str = "connect to the server itself, or see that a failover breaks the connections of \
                      clients; nothing for a port that is only mapped";

#[cfg(test)]
mod tests {
    use super::*;

    fn end(run: &str, number: &str) -> End {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        End { address: None, number: some(number), run: some(run) }
    }

    #[test]
    fn two_connections_end_apart_at_one_server() {
        let found = |one: End, other: End| apart(&one, &other).map(|finding| finding.severity());
        assert_eq!(found(end("a", "7"), end("a", "8")), None);
        assert_eq!(found(end("", "7"), end("", "8")), None);
        assert_eq!(found(end("a", ""), end("a", "")), None);
        assert_eq!(found(end("a", "7"), end("b", "7")), Some(Severity::Wrong));
        assert_eq!(found(end("a", "7"), end("a", "7")), Some(Severity::Risky));
    }

    #[test]
    fn an_address_is_one_of_its_host_or_elsewhere() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let found = |of: &str, host: &[&str]| {
            is_elsewhere(ip(of), &host.iter().map(|text| ip(text)).collect::<Vec<_>>())
        };
        assert!(found("10.0.0.7", &["10.0.0.8", "10.0.0.9"]));
        assert!(!found("10.0.0.7", &["10.0.0.8", "10.0.0.7"]));
        assert!(!found("127.0.0.1", &["0.0.0.0"]));
        assert!(!found("::ffff:10.0.0.7", &["10.0.0.7"]));
        assert!(!found("10.0.0.7", &[]));
    }
}
