//! The schemes of URLs, and the hosts of URLs with several: Sentinels or nodes of a cluster.

use crate::core::settings::parameters::invalid;
use crate::core::types::error::LockError;

pub(super) struct HostKind {
    pub(super) ending: &'static str,
    port: u16,
    nameless: &'static str,
    pub(super) repeated: &'static str,
}

pub(super) const SENTINELS: HostKind = HostKind {
    ending: "sentinel",
    port: 26_379,
    nameless: "a Sentinel has no host; write `host:26379,host:26379`",
    repeated: "a Sentinel is named twice; name each once",
};

pub(super) const NODES: HostKind = HostKind {
    ending: "cluster",
    port: 6379,
    nameless: "a node has no host; write `host:6379,host:6379`",
    repeated: "a node is named twice; name each once",
};

impl HostKind {
    /// The scheme of one server that is reached in the same way, if `scheme` is of this kind.
    pub(super) fn base<'a>(&self, scheme: &'a str) -> Option<&'a str> {
        let base = scheme.strip_suffix(self.ending)?.strip_suffix(['-', '+'])?;
        SCHEMES.contains(&base).then_some(base)
    }

    fn with_port(&self, host: &str) -> Result<String, LockError> {
        // The colons of an IPv6 address are in brackets.
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let host = host.strip_suffix(':').unwrap_or(host);
        match (host, after.trim_end_matches(':').contains(':')) {
            ("", _) => Err(invalid(self.nameless)),
            (_, true) => Ok(host.to_owned()),
            (_, false) => Ok(format!("{host}:{}", self.port)),
        }
    }
}

pub(crate) fn is_scheme(scheme: &str) -> bool {
    SCHEMES.contains(&scheme) || is_socket(scheme) || names_several(scheme)
}

pub(super) fn names_several(scheme: &str) -> bool {
    [SENTINELS, NODES].iter().any(|kind| kind.base(scheme).is_some())
}

pub(super) fn is_socket(scheme: &str) -> bool {
    ["unix", "redis+unix", "valkey+unix"].contains(&scheme)
}

/// Whether a URL of one server has a list of hosts: the client library takes the comma for part of a name.
pub(super) fn has_too_many(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    SCHEMES.contains(&scheme) && hosts.contains(',')
}

const SCHEMES: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];

/// `[user[:password]@]host[:port][,host[:port]…][/path][?…][#…]`, in its parts.
pub(super) struct Hosts<'a> {
    scheme: &'a str,
    /// Ends with `@`, if present.
    login: &'a str,
    /// Each with its port.
    each: Vec<String>,
    pub(super) path: &'a str,
    /// From the `?` on.
    tail: &'a str,
}

impl<'a> Hosts<'a> {
    pub(super) fn parse(
        kind: &HostKind,
        scheme: &'a str,
        rest: &'a str,
    ) -> Result<Self, LockError> {
        let (rest, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let each = hosts.split(',').map(|host| kind.with_port(host)).collect::<Result<_, _>>()?;
        Ok(Self { scheme, login, each, path, tail })
    }

    pub(super) fn server(&self, database: &str) -> String {
        self.servers(database).next().unwrap_or_default()
    }

    /// The URL of each host as one server, with all but the path.
    pub(super) fn servers(&self, database: &str) -> impl Iterator<Item = String> {
        let &Self { scheme, login, tail, .. } = self;
        self.each.iter().map(move |host| format!("{scheme}://{login}{host}/{database}{tail}"))
    }

    pub(super) fn strangers(&self) -> impl Iterator<Item = String> {
        let fragment = self.tail.find('#').map_or("", |at| self.tail.split_at(at).1);
        self.each.iter().map(move |host| format!("{}://{host}{fragment}", self.scheme))
    }
}
