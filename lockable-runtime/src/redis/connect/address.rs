//! Parses the URL of a server, of Sentinels, or of a cluster.

use std::collections::BTreeSet;

use ::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use super::endpoint::Endpoint;
use super::hosts::{HostKind, Hosts, NODES, SENTINELS, has_too_many, is_socket, names_several};
use crate::core::settings::parameters::{STRAY, invalid};
use crate::core::text::percent::unescaped;
use crate::core::types::error::LockError;
use crate::redis::fault;

/// What a URL says, with only the client library's settings.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) way: AddressKind,
    /// User, password, database and the form of the server's address. Its host is the first Sentinel, or the first node
    /// of a cluster.
    pub(crate) server: ConnectionInfo,
    /// The URL without credentials and parameters, for messages.
    pub(crate) name: String,
    /// Identity of the store: equal for two addresses if they name the same servers.
    pub(crate) store: String,
}

#[derive(Debug)]
pub(crate) enum AddressKind {
    /// Always at this address.
    Fixed,
    /// Sentinels name it.
    Elected(SentinelGroup),
    /// Nodes of a cluster, which know the others. Each has the user and the password of every node.
    Sharded(Vec<ConnectionInfo>),
}

#[derive(Debug)]
pub(crate) struct SentinelGroup {
    pub(crate) sentinels: Vec<ConnectionInfo>,
    pub(crate) primary: String,
}

impl Address {
    /// # Errors
    /// When the URL is invalid. No message shows a part that may be secret.
    pub(crate) fn parse(url: &str) -> Result<Self, LockError> {
        // White space at the end comes from the file or the variable that the URL was read from.
        let url = url.trim_end();
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if let Some(flaw) = flaw_of_credentials(scheme, rest) {
            return Err(invalid(flaw));
        }
        if let Some(scheme) = SENTINELS.base(scheme) {
            Self::elected(&Hosts::parse(&SENTINELS, scheme, rest)?)
        } else if let Some(scheme) = NODES.base(scheme) {
            Self::sharded(&Hosts::parse(&NODES, scheme, rest)?)
        } else {
            Self::fixed(url)
        }
    }

    fn fixed(url: &str) -> Result<Self, LockError> {
        if has_too_many(url) {
            return Err(invalid(SEVERAL));
        }
        let server = info(url)?;
        let name = name(&server);
        Ok(Self { way: AddressKind::Fixed, server, store: name.clone(), name })
    }

    /// Their path is `/NAME[/db]`.
    fn elected(hosts: &Hosts<'_>) -> Result<Self, LockError> {
        let (primary, database) = hosts.path.split_once('/').unwrap_or((hosts.path, ""));
        let primary = unescaped(primary).filter(|name| is_name(name));
        let primary = primary.ok_or_else(|| invalid(UNNAMED))?;
        let server = info(&hosts.server(database))?;
        let sentinels = infos(hosts.strangers())?;
        let behind = format!("/{primary}/{}", server.redis_settings().db());
        let HostNames { name, store } = HostNames::of(&SENTINELS, &sentinels, &behind)?;
        Ok(Self {
            name,
            store,
            way: AddressKind::Elected(SentinelGroup { sentinels, primary }),
            server,
        })
    }

    /// Their path is empty, or the number 0.
    fn sharded(hosts: &Hosts<'_>) -> Result<Self, LockError> {
        match hosts.path {
            "" | "0" => {}
            path if path.parse::<i64>().is_ok() => return Err(invalid(DATABASE)),
            _ => return Err(invalid(PATH)),
        }
        let nodes = infos(hosts.servers("0"))?;
        let HostNames { name, store } = HostNames::of(&NODES, &nodes, "")?;
        Ok(Self {
            name,
            store,
            server: info(&hosts.server("0"))?,
            way: AddressKind::Sharded(nodes),
        })
    }
}

struct HostNames {
    name: String,
    store: String,
}

impl HostNames {
    fn of(kind: &HostKind, hosts: &[ConnectionInfo], behind: &str) -> Result<Self, LockError> {
        let endpoints: Vec<_> = hosts.iter().map(endpoint).collect();
        let sorted: BTreeSet<_> = endpoints.iter().map(String::as_str).collect();
        let sorted: Vec<_> = sorted.into_iter().collect();
        if sorted.len() < endpoints.len() {
            return Err(invalid(kind.repeated));
        }
        let scheme = hosts.first().map_or("redis", scheme);
        let name = |endpoints: String| format!("{scheme}-{}://{endpoints}{behind}", kind.ending);
        Ok(Self { name: name(endpoints.join(",")), store: name(sorted.join(",")) })
    }
}

/// A flaw of the user and the password, found before a part of them is taken for something else and shown.
fn flaw_of_credentials(scheme: &str, rest: &str) -> Option<&'static str> {
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    // A socket may be called so, but behind a password it is hardly meant.
    if path.contains('@') && (authority.contains('@') || !is_socket(scheme)) {
        return Some(STRAY);
    }
    if is_socket(scheme) {
        return None;
    }
    let (login, _) = authority.rsplit_once('@')?;
    match login {
        login if names_several(scheme) && login.contains(',') => Some(REPEATED),
        login if !login.is_empty() && !login.contains(':') => Some(NO_PASSWORD),
        _ => None,
    }
}

const REPEATED: &str = "a comma is in front of the hosts: write the user and the password once, in front of the \
                        first host, and a comma of a password as `%2C`";

const NO_PASSWORD: &str =
    "the user has no password; write `user:password@`, or `:password@` for the default user";

/// Sentinels accept no other names. Anything else may be part of a password that is not percent-encoded.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

const SEVERAL: &str = "several hosts are named; of a cluster write `redis-cluster://host:6379,host:6379`, of \
                       Sentinels `redis-sentinel://host:26379,host:26379/NAME/0`, and of one server its host";

const DATABASE: &str = "in a cluster locks use database 0 alone; leave the number out of the URL";

const PATH: &str = "a path is behind the hosts of a cluster; write `redis-cluster://host:6379,host:6379`, \
                    without one";

const UNNAMED: &str = "the name of the primary is missing, or is none; a URL of Sentinels looks like \
                       `redis-sentinel://user:password@host:26379,host:26379/NAME/0`";

/// What the client library reads in the URL of one server, except for TLS: whether it knows `rediss://` depends on
/// other crates of the program.
pub(super) fn info(url: &str) -> Result<ConnectionInfo, LockError> {
    let rest = ["rediss://", "valkeys://"].iter().find_map(|start| url.strip_prefix(start));
    let Some(rest) = rest else { return plain_info(url) };
    if !cfg!(feature = "tls-no-provider") {
        return Err(fault::no_tls());
    }
    let insecure = match rest.split_once('#') {
        None => false,
        Some((_, "insecure")) => true,
        Some(_) => return Err(invalid(FRAGMENT)),
    };
    let info = plain_info(&format!("redis://{rest}"))?;
    let ConnectionAddr::Tcp(host, port) = info.addr().clone() else { return Ok(info) };
    Ok(info.set_addr(ConnectionAddr::TcpTls { host, port, insecure, tls_params: None }))
}

const FRAGMENT: &str = "only #insecure is supported as URL fragment";

fn plain_info(url: &str) -> Result<ConnectionInfo, LockError> {
    url.into_connection_info().map_err(|error| fault::bad_url(&error))
}

fn infos(urls: impl Iterator<Item = String>) -> Result<Vec<ConnectionInfo>, LockError> {
    urls.map(|url| info(&url)).collect()
}

fn name(info: &ConnectionInfo) -> String {
    let database = info.redis_settings().db();
    match info.addr() {
        ConnectionAddr::Unix(path) => format!("redis+unix://{}?db={database}", path.display()),
        _ => format!("{}://{}/{database}", scheme(info), endpoint(info)),
    }
}

/// The scheme of a URL for one server that is reached in the same way.
pub(crate) fn scheme(info: &ConnectionInfo) -> &'static str {
    if is_tls(info) { "rediss" } else { "redis" }
}

fn is_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

pub(crate) fn endpoint(info: &ConnectionInfo) -> String {
    endpoint_of(info).map_or_else(|| info.addr().to_string(), |endpoint| endpoint.to_string())
}

/// Where a server is; `None` for a unix socket.
pub(crate) fn endpoint_of(info: &ConnectionInfo) -> Option<Endpoint> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Some(Endpoint { host: host.clone(), port: *port })
        }
        _ => None,
    }
}

pub(crate) fn moved(info: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let address = match info.addr().clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host: host.to_owned(), port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host.to_owned(), port),
    };
    info.clone().set_addr(address)
}

#[cfg(test)]
mod tests;
