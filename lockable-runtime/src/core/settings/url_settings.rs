//! The settings that a URL can have, in one table: `redis://host:6379/0?prefix=shop:&expire=30s`.
//!
//! A new row whose value is ours needs a field of [`Values`], which the builder applies, and its row in the
//! documentation of `Locker::connect`.

use std::time::Duration;

use crate::core::naming::namespace::Namespace;
use crate::core::settings::parameters::invalid;
use crate::core::types::credentials::Credentials;
use crate::core::types::error::LockError;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::written::Written;

pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) of: &'static [UrlKind],
    /// Reads its value; `None` if the client library does.
    pub(crate) set: Option<Set>,
    /// What other programs call the same thing, in lower case and without underscores.
    pub(crate) elsewhere: &'static str,
    /// In which other URLs to write something else, and what.
    pub(crate) instead: (&'static [UrlKind], &'static str),
}

type Set = fn(&mut Values, String) -> Result<(), LockError>;

pub(crate) const TABLE: [Setting; 10] = [
    own("prefix", ALL, |to, text| set(&mut to.prefix, prefix(text))),
    own("namespace", ALL, |to, text| set(&mut to.namespace, namespace(text))),
    own("expire", ALL, |to, text| set(&mut to.expire, expire(&text))),
    Setting {
        instead: (&[Memory], "a store in memory has no replicas"),
        ..own("replicas", SERVERS, |to, text| set(&mut to.replicas, replicas(&text)))
    },
    Setting { of: SERVERS, instead: (&[], ""), ..of_socket("protocol", "", "") },
    of_sentinels("sentinel_user", |to, text| set(&mut to.sentinel_user, Ok(text))),
    of_sentinels("sentinel_password", |to, text| set(&mut to.sentinel_password, Ok(text))),
    of_socket("db", "database", DATABASE),
    of_socket("user", "username", LOGIN),
    of_socket("pass", "password", LOGIN),
];

const fn own(name: &'static str, of: &'static [UrlKind], set: Set) -> Setting {
    Setting { name, of, set: Some(set), elsewhere: "", instead: (&[], "") }
}

const fn of_sentinels(name: &'static str, set: Set) -> Setting {
    let instead: (&[_], _) = (&[Server], "it is for `redis-sentinel://` alone");
    Setting { instead, ..own(name, &[Sentinels], set) }
}

const fn of_socket(name: &'static str, elsewhere: &'static str, instead: &'static str) -> Setting {
    Setting { name, of: &[Socket], set: None, elsewhere, instead: (&[Server, Sentinels], instead) }
}

/// Does not replace the value of the builder.
fn set<T>(place: &mut Option<T>, value: Result<T, LockError>) -> Result<(), LockError> {
    place.get_or_insert(value?);
    Ok(())
}

const DATABASE: &str = "write the number of the database as the path, as in `redis://host:6379/3` or \
                        `redis-sentinel://host:26379/NAME/3`; a cluster has none";

const LOGIN: &str = "write `user:password@` in front of the host";

/// The kind of store that a URL names, as far as its settings depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlKind {
    Memory,
    Server,
    Sentinels,
    Socket,
}

use UrlKind::{Memory, Sentinels, Server, Socket};

const ALL: &[UrlKind] = &[Memory, Server, Sentinels, Socket];
const SERVERS: &[UrlKind] = &[Server, Sentinels, Socket];

impl UrlKind {
    pub(crate) fn of(url: &str) -> Self {
        let (scheme, _) = url.split_once("://").unwrap_or_default();
        match scheme {
            "memory" => Memory,
            scheme if scheme.ends_with("sentinel") => Sentinels,
            scheme if scheme.ends_with("unix") => Socket,
            _ => Server,
        }
    }

    pub(crate) fn settings(self) -> impl Iterator<Item = &'static Setting> {
        TABLE.iter().filter(move |setting| setting.of.contains(&self))
    }

    pub(crate) fn setting(self, name: &str) -> Option<&'static Setting> {
        self.settings().find(|setting| setting.name == name)
    }
}

pub(crate) fn advice_on_ignored() -> String {
    let own = Server.settings().filter(|setting| setting.set.is_some());
    let own = own.map(|setting| format!("`{}`", setting.name)).collect::<Vec<_>>().join(", ");
    let (others, last) = own.rsplit_once(", ").unwrap_or_default();
    format!("nothing if another program reads it; lockable's settings are {others} and {last}")
}

#[derive(Clone, Default)]
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(crate) struct Values {
    pub(crate) prefix: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) expire: Option<Duration>,
    pub(crate) replicas: Option<u8>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
}

impl Values {
    /// # Errors
    /// When there is a user without a password.
    pub(crate) fn sentinel_credentials(&mut self) -> Result<Option<Credentials>, LockError> {
        match (self.sentinel_user.take(), self.sentinel_password.take()) {
            (user, Some(password)) => Ok(Some(Credentials { user, password })),
            (Some(_), None) => Err(invalid("`sentinel_user` needs `sentinel_password` beside it")),
            (None, None) => Ok(None),
        }
    }
}

fn prefix(text: String) -> Result<String, LockError> {
    if LockKey::prefixed(&text, "key").is_ok() {
        return Ok(text);
    }
    Err(invalid("`prefix` cannot begin a key: it is too long, or its braces are no hash tag"))
}

fn namespace(text: String) -> Result<String, LockError> {
    Namespace::new(&text).map(|_| text).map_err(|error| invalid(&error.to_string()))
}

fn expire(text: &str) -> Result<Duration, LockError> {
    let flaw = "`expire` is no duration; write `30s`, `1500ms`, `1m30s` or a number of seconds";
    let Written { duration, doubtful } = Written::parse(text).map_err(|_| invalid(flaw))?;
    if doubtful.is_some() {
        return Err(invalid(
            "`expire` without a unit is a number of seconds, and this one looks like milliseconds; write \
             it with its unit, such as `60s`",
        ));
    }
    Ttl::new("expire", duration).map(|_| duration).map_err(|error| invalid(&error.to_string()))
}

fn replicas(text: &str) -> Result<u8, LockError> {
    text.parse().map_err(|_| invalid("`replicas` is no number from 0 to 255"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The settings for which the documentation of `Locker::connect` names a method of the builder.
    fn documented() -> Vec<(&'static str, &'static str)> {
        let rows = include_str!("../locker/connect.rs").lines().filter_map(|line| {
            let (name, row) = line.trim().strip_prefix("/// | `")?.split_once('`')?;
            Some((name, row.split_once("[`LockerBuilder::")?.1.split_once('`')?.0))
        });
        rows.collect()
    }

    #[test]
    fn every_setting_is_documented() {
        let all = TABLE.iter().filter(|it| it.set.is_some() && it.of != [Sentinels]);
        let documented = documented();
        assert!(
            all.map(|it| it.name).eq(documented.iter().map(|(name, _)| *name)),
            "{documented:?}"
        );
        for it in &TABLE {
            let name = it.name;
            let is_there = [format!("`{name}`"), format!("{name}=")];
            assert!(
                is_there.iter().any(|text| include_str!("../locker/connect.rs").contains(text)),
                "{name}"
            );
        }
    }

    #[test]
    fn each_setting_names_a_method_of_the_builder() {
        let builder = include_str!("../locker/builder.rs");
        assert!(builder.contains("they have priority over those in its URL"));
        for (name, method) in documented() {
            assert!(builder.contains(&format!("pub fn {method}(")), "{name}: {method}");
        }
    }

    #[test]
    fn what_is_ignored_is_compared_with_the_table() {
        let advice = "nothing if another program reads it; lockable's settings are `prefix`, `namespace`, `expire` and \
                      `replicas`";
        assert_eq!(advice_on_ignored(), advice);
    }
}
