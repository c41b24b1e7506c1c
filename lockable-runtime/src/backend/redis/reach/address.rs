//! From a URL to where the server is, or to the Sentinels that know.

use std::collections::BTreeSet;

use ::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::backend::redis::fault;
use crate::types::credentials::Credentials;
use crate::types::error::LockError;
use crate::types::parameters::{Parameter, invalid, take_from, unescaped};

/// What a URL says.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) way: Way,
    /// The user, the password, the database and the form of the server's address; where Sentinels name it, its
    /// host is the first of theirs.
    pub(crate) server: ConnectionInfo,
    /// The URL without credentials and parameters, for messages.
    pub(crate) name: String,
    /// What the names of two addresses have in common exactly when they lead to the same place.
    pub(crate) store: String,
}

/// How the server is found.
#[derive(Debug)]
pub(crate) enum Way {
    /// It is at this address always.
    Fixed,
    /// Sentinels name it.
    Elected(Group),
}

/// The Sentinels that watch one primary.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) sentinels: Vec<ConnectionInfo>,
    /// The name that they have for the primary.
    pub(crate) primary: String,
    /// Theirs; the user and the password in front of the hosts are the server's.
    pub(crate) credentials: Option<Credentials>,
}

impl Address {
    /// # Errors
    /// When the URL is not one of a server or of Sentinels. No message shows a part that may be secret.
    pub(crate) fn parse(url: &str) -> Result<Self, LockError> {
        // White space at the end comes from the file or the variable that the URL was read from.
        let url = url.trim_end();
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if let Some(flaw) = flaw_of_credentials(scheme, rest) {
            return Err(invalid(flaw));
        }
        let mut own = Own::default();
        match of_sentinels(scheme) {
            Some(scheme) => {
                let rest = take_from(rest, |parameter| own.take(parameter))?;
                Self::elected(scheme, &rest, own.credentials()?)
            }
            None => Self::fixed(&take_from(url, |parameter| own.refuse(parameter))?),
        }
    }

    fn fixed(url: &str) -> Result<Self, LockError> {
        if has_several_hosts(url) {
            return Err(invalid(SEVERAL));
        }
        let server = info(url)?;
        let name = name(&server);
        Ok(Self { way: Way::Fixed, server, store: name.clone(), name })
    }

    /// `[user[:password]@]host[:port][,host[:port]…]/NAME[/db][?…][#…]`
    fn elected(
        scheme: &str,
        rest: &str,
        credentials: Option<Credentials>,
    ) -> Result<Self, LockError> {
        let (rest, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let (primary, database) = path.split_once('/').unwrap_or((path, ""));
        let primary = unescaped(primary).filter(|name| is_name(name));
        let primary = primary.ok_or_else(|| invalid(UNNAMED))?;
        let hosts = sentinels(hosts)?;
        let first = hosts.first().map(String::as_str).unwrap_or_default();
        let server = info(&format!("{scheme}://{user}{first}/{database}{tail}"))?;
        let fragment = tail.find('#').map_or("", |at| tail.split_at(at).1);
        let of_sentinel = |host: &String| info(&format!("{scheme}://{host}{fragment}"));
        let sentinels = hosts.iter().map(of_sentinel).collect::<Result<Vec<_>, _>>()?;
        let places: Vec<_> = sentinels.iter().map(place).collect();
        let name = |places: String| {
            let scheme = if is_tls(&server) { "rediss-sentinel" } else { "redis-sentinel" };
            format!("{scheme}://{places}/{primary}/{}", server.redis_settings().db())
        };
        let sorted: BTreeSet<_> = places.iter().map(String::as_str).collect();
        let sorted: Vec<_> = sorted.into_iter().collect();
        if sorted.len() < places.len() {
            return Err(invalid("a Sentinel is named twice; name each once"));
        }
        Ok(Self {
            name: name(places.join(",")),
            store: name(sorted.join(",")),
            way: Way::Elected(Group { sentinels, primary, credentials }),
            server,
        })
    }
}

/// What is wrong with the user and the password, before a part of them is taken for something else, and shown.
fn flaw_of_credentials(scheme: &str, rest: &str) -> Option<&'static str> {
    if UNIX.contains(&scheme) {
        return None;
    }
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // In the value of a parameter it may be what is meant.
    let is_stray = |part: &str| part.contains('@') && !part.contains('=');
    if behind.split(['?', '#', '&']).any(is_stray) {
        return Some(STRAY);
    }
    let (login, _) = authority.rsplit_once('@')?;
    match login {
        login if of_sentinels(scheme).is_some() && login.contains(',') => Some(REPEATED),
        login if !login.is_empty() && !login.contains(':') => Some(NO_PASSWORD),
        _ => None,
    }
}

const STRAY: &str = "an `@` is behind the address: write `/`, `?`, `#` and `@` of a password as `%2F`, `%3F`, \
                     `%23` and `%40`";

const REPEATED: &str = "a comma is in front of the hosts: write the user and the password once, in front of the \
                        first host, and a comma of a password as `%2C`";

const NO_PASSWORD: &str =
    "the user has no password; write `user:password@`, or `:password@` for the default user";

/// Sentinels accept no other names. Something else may be a part of a password that is not percent-encoded.
fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_part)
}

/// The scheme of the servers, where the URL's is one of Sentinels.
fn of_sentinels(scheme: &str) -> Option<&str> {
    let base = scheme.strip_suffix("sentinel")?.strip_suffix(['-', '+'])?;
    SCHEMES.contains(&base).then_some(base)
}

/// Whether URLs with this scheme are of Redis or Valkey.
pub(crate) fn is_scheme(scheme: &str) -> bool {
    SCHEMES.contains(&scheme) || UNIX.contains(&scheme) || of_sentinels(scheme).is_some()
}

const UNIX: [&str; 3] = ["unix", "redis+unix", "valkey+unix"];
const SCHEMES: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];

/// Each with its port.
fn sentinels(hosts: &str) -> Result<Vec<String>, LockError> {
    let with_port = |host: &str| {
        // The colons of an IPv6 address are in brackets.
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let host = host.strip_suffix(':').unwrap_or(host);
        match (host, after.trim_end_matches(':').contains(':')) {
            ("", _) => Err(invalid("a Sentinel has no host; write `host:26379,host:26379`")),
            (_, true) => Ok(host.to_owned()),
            (_, false) => Ok(format!("{host}:{SENTINEL_PORT}")),
        }
    };
    hosts.split(',').map(with_port).collect()
}

/// The client library takes the comma for a part of a name.
fn has_several_hosts(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    SCHEMES.contains(&scheme) && hosts.contains(',')
}

const SENTINEL_PORT: u16 = 26_379;

const SEVERAL: &str = "several hosts are named; of Sentinels write \
                       `redis-sentinel://host:26379,host:26379/NAME/0`, and of one server its host";

const UNNAMED: &str = "the name of the primary is missing, or is none; a URL of Sentinels looks like \
                       `redis-sentinel://user:password@host:26379,host:26379/NAME/0`";

/// The parameters that only URLs of Sentinels have.
#[derive(Default)]
struct Own {
    user: Option<String>,
    password: Option<String>,
}

impl Own {
    /// `false` when the parameter is for the client library.
    fn take(&mut self, parameter: &Parameter<'_>) -> Result<bool, LockError> {
        match parameter.name {
            USER => parameter.set(&mut self.user, parameter.decoded()?)?,
            PASSWORD => parameter.set(&mut self.password, parameter.decoded()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuse(&mut self, parameter: &Parameter<'_>) -> Result<bool, LockError> {
        if self.take(parameter)? {
            let name = parameter.name;
            return Err(invalid(&format!("`{name}` is for `redis-sentinel://` alone")));
        }
        Ok(false)
    }

    fn credentials(self) -> Result<Option<Credentials>, LockError> {
        match (self.user, self.password) {
            (user, Some(password)) => Ok(Some(Credentials { user, password })),
            (Some(_), None) => Err(invalid("`sentinel_user` needs `sentinel_password` beside it")),
            (None, None) => Ok(None),
        }
    }
}

const USER: &str = "sentinel_user";
const PASSWORD: &str = "sentinel_password";

/// What the client library reads in the URL of one server.
fn info(url: &str) -> Result<ConnectionInfo, LockError> {
    url.into_connection_info().map_err(|error| fault::bad_url(&error))
}

/// The URL of one server, without credentials and parameters.
fn name(info: &ConnectionInfo) -> String {
    let database = info.redis_settings().db();
    match info.addr() {
        ConnectionAddr::Unix(path) => format!("redis+unix://{}?db={database}", path.display()),
        _ => format!("{}://{}/{database}", scheme(info), place(info)),
    }
}

/// That of a URL for one server that is reached in the same way.
pub(crate) fn scheme(info: &ConnectionInfo) -> &'static str {
    if is_tls(info) { "rediss" } else { "redis" }
}

fn is_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

/// `host:port`, as a URL has it.
pub(crate) fn place(info: &ConnectionInfo) -> String {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            host_and_port(host, *port)
        }
        address => address.to_string(),
    }
}

/// An IPv6 address is in brackets, so that its last colon is not taken for the port's.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The same with another host and port.
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
