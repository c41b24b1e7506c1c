//! Reads the settings of a URL: what is behind its `?` and its `#`.
//!
//! Two services with a setting that one of them misspells hold one lock under two names. So an unknown setting is
//! refused, except those of other programs in a URL that is theirs too. No message shows a value, nor a name that may
//! be a part of a password.

use super::url_settings::{Setting, TABLE, UrlKind, Values};
use crate::core::settings::parameters::{STRAY, invalid};
use crate::core::text::percent::unescaped;
use crate::core::types::error::LockError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Readers {
    #[default]
    Lockers,
    /// For other programs too: a platform has written it, or another library reads it.
    Others,
}

/// A URL without its settings, except those that the client library reads.
pub(crate) struct Cut {
    pub(crate) url: String,
    /// The names of the settings that are for other programs.
    pub(crate) ignored: Vec<String>,
}

/// Takes the settings out of a URL; those that have no value yet get it.
///
/// # Errors
/// When a setting is neither a locker's nor another program's, or has an invalid value.
pub(crate) fn cut(url: &str, readers: Readers, values: &mut Values) -> Result<Cut, LockError> {
    let kind = UrlKind::of(url);
    let has_stray = refuse_shape(kind, url.trim_end())?;
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut seen, mut of_client, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
    for written in query.split('&').filter(|written| !written.trim_end().is_empty()) {
        let (name, value) =
            written.split_once('=').map_or((written, None), |(name, value)| (name, Some(value)));
        match kind.setting(name) {
            Some(_) if seen.contains(&name) => {
                return Err(invalid(&format!("`{name}` occurs twice")));
            }
            Some(Setting { set, .. }) => {
                seen.push(name);
                match set {
                    Some(set) => set(values, decoded(name, value)?)?,
                    None => of_client.push(written),
                }
            }
            // It may be a part of a password.
            None if has_stray => return Err(invalid(STRAY)),
            None => {
                let is_behind_password = seen.iter().any(|name| PASSWORDS.contains(name));
                let may_be_secret =
                    is_behind_password && (value.is_none() || readers == Readers::Lockers);
                ignored.push(foreign(kind, readers, name.trim(), may_be_secret)?);
            }
        }
    }
    let sign = if of_client.is_empty() { "" } else { "?" };
    let url = format!("{address}{sign}{}{fragment}", of_client.join("&"));
    Ok(Cut { url, ignored })
}

/// The percent-decoded value. White space at its end comes from the file or the variable that the URL was read from.
fn decoded(name: &str, value: Option<&str>) -> Result<String, LockError> {
    let value = value.ok_or_else(|| invalid(&format!("`{name}` has no value")))?;
    let flaw = || invalid(&format!("`{name}` is not percent-encoded UTF-8; write `%25` for `%`"));
    unescaped(value.trim_end()).ok_or_else(flaw)
}

/// The name of a setting that only other programs can know. Behind an `&` it may be the rest of a password.
fn foreign(
    kind: UrlKind,
    readers: Readers,
    name: &str,
    may_be_secret: bool,
) -> Result<String, LockError> {
    if kind.settings().any(|setting| setting.name == name) {
        return Err(invalid(&format!(
            "white space is around the name `{name}`; write `{name}=` and its value without it"
        )));
    }
    let is_plain = is_plain(name) && !may_be_secret;
    let (near, advice) = (nearest(kind, name), advice(kind, name));
    if readers == Readers::Others && is_plain && near.is_none() && advice.is_none() {
        return Ok(name.to_owned());
    }
    let shown = if is_plain { format!("`{name}`") } else { "one name".to_owned() };
    let more = match (near, advice) {
        (None, Some(advice)) => format!("; {advice}"),
        (None, None) => list(kind),
        (Some(near), _) => format!(", did you mean `{near}`?{}", list(kind)),
    };
    let encoded = if may_be_secret { "; write an `&` of a password as `%26`" } else { "" };
    Err(invalid(&format!("{shown} is no setting{more}{encoded}")))
}

fn list(kind: UrlKind) -> String {
    let names: Vec<_> = kind.settings().map(|setting| format!("`{}`", setting.name)).collect();
    format!("; the settings of this URL are {}", names.join(", "))
}

/// The setting whose name differs by case, by dashes or by up to two letters.
fn nearest(kind: UrlKind, name: &str) -> Option<&'static str> {
    let distance = |known: &str| strsim::levenshtein(&plain(name), &plain(known));
    let near = |known: &&str| distance(known) <= 2.min(known.len() / 3);
    let names = kind.settings().map(|setting| setting.name);
    names.filter(near).min_by_key(|known| distance(known))
}

/// What to write instead of a setting that another kind of URL has.
fn advice(kind: UrlKind, name: &str) -> Option<&'static str> {
    let name = plain(name);
    let is_about_tls = ["insecure", "verify"].iter().any(|word| name.contains(word))
        || ["ssl", "tls"].iter().any(|start| name.starts_with(start));
    if is_about_tls && kind != UrlKind::Memory {
        return Some(TLS);
    }
    let is_it = |it: &&Setting| plain(it.name) == name || it.elsewhere == name;
    let (others, advice) = TABLE.iter().find(is_it)?.instead;
    others.contains(&kind).then_some(advice)
}

/// Refuses what is wrong whatever its settings are called; returns whether an `@` is among them.
fn refuse_shape(kind: UrlKind, url: &str) -> Result<bool, LockError> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, "insecure"));
    let (address, query) = rest.split_once('?').unwrap_or((rest, " "));
    let has_stray = query.contains('@');
    let flaw = match (query, fragment) {
        _ if kind == UrlKind::Memory && address.contains('@') => USER_IN_MEMORY,
        (_, fragment) if fragment.contains('@') => STRAY,
        _ if has_stray && (lacks_port(address) || query.contains('?')) => STRAY,
        (_, fragment) if fragment != "insecure" || (rest != url && !is_tls(url)) => FRAGMENT,
        ("", _) => NOTHING_BEHIND,
        (query, _) if query.contains('?') => REPEATED,
        _ => return Ok(has_stray),
    };
    Err(invalid(flaw))
}

/// Whether a host has a colon and no port: what is behind that may be a password.
fn lacks_port(address: &str) -> bool {
    let (_, rest) = address.split_once("://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    authority.split(',').any(|host| host.ends_with(':'))
}

fn is_tls(url: &str) -> bool {
    ["rediss", "valkeys"].iter().any(|start| url.starts_with(start))
}

fn plain(name: &str) -> String {
    let name = unescaped(name).unwrap_or_else(|| name.to_owned());
    name.to_lowercase().replace(['_', '-'], "")
}

fn is_plain(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(is_part)
}

/// The settings whose values are secrets.
const PASSWORDS: [&str; 2] = ["sentinel_password", "pass"];

const USER_IN_MEMORY: &str =
    "an `@` is in the name of a store in memory; write `memory://` or `memory://name`";

const FRAGMENT: &str = "a URL has nothing behind a `#`; write a `#` of a setting as `%23`";

const NOTHING_BEHIND: &str = "nothing is behind the `?`; leave it out";

const REPEATED: &str =
    "a second `?` is behind the first; write `&` between two settings, and `%3F` for a `?` in one";

const TLS: &str = "write `rediss://` for TLS, which checks the server's certificate against the roots of the system, \
                   or against a root certificate that is given; the check cannot be turned off";

#[cfg(test)]
mod tests;
