//! A proxy between this machine and the server: locks need one that always leads to the same server, and whose
//! connections break when it leads to another.
//!
//! See "How does the check detect a proxy?" in DESIGN.md.

use std::net::SocketAddr;

use ::redis::{ConnectionAddr, FromRedisValue, Pipeline, Value};
use tokio::net::lookup_host;

use super::session::connect;
use crate::findings::{Code, Finding, Severity};
use crate::redis::wire::server::field;
use crate::redis::wire::session::Session;

pub(super) async fn check(session: &Session<'_>) -> Result<Option<Finding>, Finding> {
    let end = FarEnd::of(session).await?;
    let other = connect(session.opener, session.target.clone()).await?;
    let other = FarEnd::of(&other).await?;
    let ours = addresses(session).await;
    Ok(apart(&end, &other).or_else(|| translated(&ours, &end)))
}

#[derive(Debug, Default)]
struct FarEnd {
    /// The address that it was opened to, in the server's words.
    address: Option<SocketAddr>,
    /// The number of the connection, which the server gives once.
    number: Option<String>,
    /// Drawn by the server when it started.
    run: Option<String>,
}

impl FarEnd {
    async fn of(session: &Session<'_>) -> Result<Self, Finding> {
        let mut pipeline = Pipeline::new();
        pipeline.cmd("HELLO").cmd("CLIENT").arg("INFO").cmd("INFO").arg("server");
        let replies = session.call(&pipeline).await?;
        let [hello, client, info] = &replies[..] else { return Ok(Self::default()) };
        let text = |reply: &Value| String::from_redis_value_ref(reply).unwrap_or_default();
        let client = text(client);
        let info = text(info);
        let of_client = |name| client.split_whitespace().find_map(|field| field.strip_prefix(name));
        let run = info.lines().find_map(|line| line.strip_prefix("run_id:"));
        Ok(Self {
            // The server writes no address where it does not know one.
            address: of_client("laddr=").and_then(|address| address.parse().ok()),
            number: field(hello, "id").or_else(|| of_client("id=").map(str::to_owned)),
            run: run.map(|run| run.trim().to_owned()),
        })
    }
}

/// Two connections that do not end apart, or not at one server.
fn apart(one: &FarEnd, other: &FarEnd) -> Option<Finding> {
    if one.run.is_some() && other.run.is_some() && one.run != other.run {
        let message = "two connections to this address led to two servers, which share no locks";
        return Some(Finding::new(Severity::Error, Code::Proxy, message));
    }
    let is_shared = one.number.is_some() && one.number == other.number;
    let message = "a proxy shares its connection to the server among clients, and may switch to another server";
    is_shared.then(|| Finding::new(Severity::Warning, Code::Proxy, message))
}

/// The addresses of the URL's host; none for a unix socket, or if the name does not resolve in time.
async fn addresses(session: &Session<'_>) -> Vec<SocketAddr> {
    let (ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. }) =
        session.target.info().addr()
    else {
        return Vec::new();
    };
    let opener = session.opener;
    let found = opener.within(opener.connect_deadline, lookup_host((host.as_str(), *port))).await;
    found.and_then(Result::ok).into_iter().flatten().collect()
}

/// A server that saw the connection come to another address than those of the URL.
fn translated(ours: &[SocketAddr], end: &FarEnd) -> Option<Finding> {
    let first = ours.first()?;
    let address = end.address?;
    let canonical = |at: &SocketAddr| (at.ip().to_canonical(), at.port());
    let is_it = |at: &SocketAddr| {
        let stands_for_all = at.ip().is_unspecified() && at.port() == address.port();
        stands_for_all || canonical(at) == canonical(&address)
    };
    let message = format!(
        "a proxy, or a translation of addresses, is between {first} and {address}; one that leaves our \
         connections open at a failover hides that: fencing tokens can repeat"
    );
    (!ours.iter().any(is_it)).then(|| Finding::new(Severity::Info, Code::Proxy, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(run: &str, number: &str) -> FarEnd {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        FarEnd { address: None, number: some(number), run: some(run) }
    }

    #[test]
    fn two_connections_end_apart_at_one_server() {
        let found =
            |one: FarEnd, other: FarEnd| apart(&one, &other).map(|finding| finding.severity());
        assert_eq!(found(end("a", "7"), end("a", "8")), None);
        assert_eq!(found(end("", "7"), end("", "8")), None);
        assert_eq!(found(end("a", ""), end("a", "")), None);
        assert_eq!(found(end("a", "7"), end("b", "7")), Some(Severity::Error));
        assert_eq!(found(end("a", "7"), end("a", "7")), Some(Severity::Warning));
    }

    #[test]
    fn an_address_is_the_opened_one_or_another() {
        let found = |ours: &str, address: &str| {
            let end = FarEnd { address: address.parse().ok(), ..FarEnd::default() };
            let ours: Vec<_> = ours.split(' ').filter_map(|at| at.parse().ok()).collect();
            translated(&ours, &end).is_some()
        };
        assert!(found("10.0.0.7:6379", "10.0.0.8:6379"));
        assert!(found("10.0.0.7:6379", "10.0.0.7:7000"));
        assert!(!found("10.0.0.7:6379", "10.0.0.7:6379"));
        assert!(!found("[::ffff:10.0.0.7]:6379", "10.0.0.7:6379"));
        assert!(!found("10.0.0.8:6379 10.0.0.7:6379", "10.0.0.7:6379"));
        assert!(!found("0.0.0.0:6379", "10.0.0.7:6379") && found("0.0.0.0:6379", "10.0.0.7:7000"));
        assert!(!found("", "10.0.0.7:6379") && !found("10.0.0.7:6379", "?:0"));
    }
}
