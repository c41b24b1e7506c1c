//! Which settings a URL may have: what is behind its `?` and its `#`.
//!
//! Two services with a setting that one of them misspells hold one lock under two names. So an unknown setting is
//! refused, but for those of other programs in a URL that is theirs too.

use crate::types::error::LockError;
use crate::types::parameters::{STRAY, invalid, take_from};
use crate::types::percent::unescaped;

/// For whom the settings of a URL are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Readers {
    /// For lockers alone.
    #[default]
    Lockers,
    /// For other programs too: a platform has written it, or another library reads it.
    Others,
}

/// A URL without unknown settings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) url: String,
    /// The names of the settings of other programs, which it had.
    pub(super) ignored: Vec<String>,
}

/// Leaves out of a URL what is for other programs.
///
/// # Errors
/// When it has a setting that is neither a locker's nor another program's. No message shows a value, nor a name
/// that may be a part of a password.
pub(super) fn known(url: &str, readers: Readers) -> Result<Known, LockError> {
    let kind = Kind::of(url);
    let has_stray = refuse_shape(kind, url.trim_end())?;
    let mut ignored = Vec::new();
    let url = take_from(url, |setting| {
        let name = setting.name.trim();
        let is_foreign = || readers == Readers::Others && kind.is_foreign(name);
        match name {
            "" if setting.is_empty() => Ok(true),
            // Who applies it compares the whole name.
            _ if kind.knows(setting.name) => Ok(false),
            // It may be a part of a password.
            _ if has_stray => Err(invalid(STRAY)),
            _ if kind.knows(name) => Err(invalid(&spaced(name))),
            _ if is_foreign() => {
                ignored.push(name.to_owned());
                Ok(true)
            }
            _ => Err(invalid(&kind.refusal(name))),
        }
    })?;
    Ok(Known { url, ignored })
}

/// What is wrong whatever its settings are called; the flag is whether an `@` is among them.
fn refuse_shape(kind: Kind, url: &str) -> Result<bool, LockError> {
    let (rest, fragment) = url.split_once('#').unwrap_or((url, "insecure"));
    let (address, query) = rest.split_once('?').unwrap_or((rest, " "));
    let has_stray = query.contains('@');
    let flaw = match (query, fragment) {
        _ if kind == Kind::Memory && address.contains('@') => USER_IN_MEMORY,
        (_, fragment) if fragment.contains('@') => STRAY,
        (query, _) if query.contains('@') && lacks_port(address) => STRAY,
        (_, fragment) if fragment != "insecure" || (rest != url && !is_tls(url)) => FRAGMENT,
        ("", _) => NOTHING_BEHIND,
        (query, _) if query.contains('?') && !has_stray => REPEATED,
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

/// What a URL leads to, as far as its settings depend on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Memory,
    /// One server, or a cluster.
    Server,
    Sentinels,
    Socket,
}

impl Kind {
    fn of(url: &str) -> Self {
        let (scheme, _) = url.split_once("://").unwrap_or_default();
        match scheme {
            "memory" => Self::Memory,
            scheme if scheme.ends_with("sentinel") => Self::Sentinels,
            scheme if scheme.ends_with("unix") => Self::Socket,
            _ => Self::Server,
        }
    }

    fn settings(self) -> impl Iterator<Item = &'static str> {
        let more: &[_] = match self {
            Self::Memory => &[],
            Self::Server => &["replicas", "protocol"],
            Self::Sentinels => &["replicas", "protocol", "sentinel_user", "sentinel_password"],
            Self::Socket => &["replicas", "protocol", "db", "user", "pass"],
        };
        ["prefix", "namespace", "expire"].into_iter().chain(more.iter().copied())
    }

    fn knows(self, name: &str) -> bool {
        self.settings().any(|known| known == name)
    }

    /// The setting that a name means which differs by case, by dashes or by up to two letters.
    fn nearest(self, name: &str) -> Option<&'static str> {
        let distance = |known: &str| strsim::levenshtein(&plain(name), &plain(known));
        let near = |known: &&str| distance(known) <= 2.min(known.len() / 3);
        self.settings().filter(near).min_by_key(|known| distance(known))
    }

    /// Whether only other programs can know the name.
    fn is_foreign(self, name: &str) -> bool {
        is_plain(name) && self.advice(name).is_none() && self.nearest(name).is_none()
    }

    fn refusal(self, name: &str) -> String {
        let shown = if is_plain(name) { format!("`{name}`") } else { "one name".to_owned() };
        let near = self.nearest(name);
        if let Some(advice) = self.advice(name).filter(|_| near.is_none()) {
            return format!("{shown} is no setting; {advice}");
        }
        let hint = near.map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
        let names: Vec<_> = self.settings().map(|known| format!("`{known}`")).collect();
        let names = names.join(", ");
        format!("{shown} is no setting{hint}; the settings of this URL are {names}")
    }

    /// What to write in the place of a setting that this URL does not have, where another place has it.
    fn advice(self, name: &str) -> Option<&'static str> {
        let name = plain(name);
        let is_about_tls = ["insecure", "verify"].iter().any(|word| name.contains(word))
            || ["ssl", "tls"].iter().any(|start| name.starts_with(start));
        match &*name {
            "replicas" if self == Self::Memory => Some(OF_SERVERS),
            _ if self == Self::Memory => None,
            _ if is_about_tls => Some(TLS),
            _ if self == Self::Socket => None,
            "db" | "database" => Some(DATABASE),
            "user" | "username" | "pass" | "password" => Some(LOGIN),
            "sentineluser" | "sentinelpassword" if self != Self::Sentinels => Some(OF_SENTINELS),
            _ => None,
        }
    }
}

fn spaced(name: &str) -> String {
    format!("white space is around the name `{name}`; write `{name}=` and its value without it")
}

fn plain(name: &str) -> String {
    let name = unescaped(name).unwrap_or_else(|| name.to_owned());
    name.to_lowercase().replace(['_', '-'], "")
}

/// Whether it can be the name of a setting, and so be shown.
fn is_plain(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=40).contains(&name.len()) && name.bytes().all(is_part)
}

const USER_IN_MEMORY: &str =
    "an `@` is in the name of a store in memory; write `memory://` or `memory://name`";

const FRAGMENT: &str = "a URL has nothing behind a `#`; write a `#` of a setting as `%23`";

const NOTHING_BEHIND: &str = "nothing is behind the `?`; leave it out";

const REPEATED: &str =
    "a second `?` is behind the first; write `&` between two settings, and `%3F` for a `?` in one";

const TLS: &str = "write `rediss://` for TLS, which checks the server's certificate against the roots of the system, \
                   or against the one that `LockerBuilder::root_certificate` names; the check cannot be turned off";

const DATABASE: &str = "write the number of the database as the path, as in `redis://host:6379/3` or \
                        `redis-sentinel://host:26379/NAME/3`; a cluster has none";

const LOGIN: &str = "write `user:password@` in front of the host";

const OF_SERVERS: &str = "a store in memory has no replicas";

const OF_SENTINELS: &str = "it is for `redis-sentinel://` alone";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    #[cfg(feature = "redis")]
    use crate::backend::Address;
    #[cfg(feature = "redis")]
    use crate::locker::defaults::Defaults;
    use crate::locker::{Locker, LockerBuilder};
    use crate::types::error::LockErrorKind;

    fn own(url: &str) -> Result<Known, LockError> {
        known(url, Readers::Lockers)
    }

    fn refusals(url: &str) -> [String; 2] {
        [Readers::Lockers, Readers::Others].map(|readers| {
            let error = known(url, readers).unwrap_err();
            assert!(error.kind() == LockErrorKind::InvalidUrl, "{url}: {error}");
            error.to_string()
        })
    }

    #[test]
    fn known_settings_stay() {
        for url in [
            "redis://u:p@host/0?prefix=shop:&namespace=a&expire=30s&protocol=resp3",
            "rediss://host?prefix=#insecure",
            "redis://host:6379?prefix=a@b",
            "redis-sentinel://a,b/mm?sentinel_user=u&sentinel_password=p@w",
            "redis+unix:///run/a@b.sock?db=1&user=u&pass=p",
            "redis-cluster://a,b?protocol=resp3&replicas=1",
            "memory://?prefix=shop:\n",
            "memory://name",
            "no url",
        ] {
            assert_eq!(own(url).unwrap(), Known { url: url.to_owned(), ignored: vec![] }, "{url}");
        }
        assert_eq!(own("redis://host?&prefix=x&&").unwrap().url, "redis://host?prefix=x");
    }

    const KINDS: [&str; 4] =
        ["memory://", "redis://host", "redis-sentinel://host/mm", "redis+unix:///s"];

    /// All that reads a URL and its settings.
    #[cfg(feature = "redis")]
    fn read(url: &str) -> String {
        let (defaults, url) = Defaults::split_from(&own(url).unwrap().url).unwrap();
        format!("{defaults:?} {:?}", Address::parse(&url))
    }

    #[cfg(feature = "redis")]
    #[test]
    fn no_accepted_setting_is_ignored() {
        for url in KINDS {
            for name in Kind::of(url).settings() {
                assert_ne!(read(url), read(&format!("{url}?{name}=1")), "{url}: {name}");
            }
        }
    }

    #[test]
    fn white_space_around_a_name_is_refused_everywhere() {
        let settings = |url| Kind::of(url).settings().map(move |name| (url, name));
        for (url, name) in KINDS.into_iter().flat_map(settings) {
            let meant = format!("write `{name}=`");
            for blank in [" ", "\t", "\n", "\u{a0}", "\u{2003}"] {
                for written in [format!("{name}{blank}"), format!("{blank}{name}")] {
                    for error in refusals(&format!("{url}?{written}=1")) {
                        assert!(error.contains(&meant), "{url} {written:?}: {error}");
                    }
                }
            }
        }
        let shared = known("redis://host?timeout =5", Readers::Others).unwrap();
        assert_eq!(shared.ignored, ["timeout"]);
    }

    /// In a URL for all programs these are refused as well.
    #[test]
    fn a_setting_that_is_nearly_ours_is_refused() {
        for (written, meant) in [
            ("redis://host?prefx=shop:", "prefix"),
            ("redis://host?Prefix=shop:", "prefix"),
            ("redis://host?Expire=5s", "expire"),
            ("redis://host?protocol=resp3&name_space=x", "namespace"),
            ("redis://host?%70refix=x", "prefix"),
            ("memory://?expiry=5s", "expire"),
            ("redis+unix:///s?DB=1", "db"),
            ("redis-cluster://a,b?replica=1", "replicas"),
            ("redis-sentinel://a/mm?sentinel-user=x", "sentinel_user"),
        ] {
            for error in refusals(written) {
                assert!(error.contains(&format!("did you mean `{meant}`?")), "{written}: {error}");
            }
        }
    }

    #[test]
    fn what_belongs_elsewhere_in_a_url_is_refused_everywhere() {
        for (url, advice) in [
            ("redis://host?db=3", "`redis://host:6379/3`"),
            ("redis://host?password=canary", "in front of the host"),
            ("redis://host?sentinel_password=canary", "`redis-sentinel://` alone"),
            ("redis-cluster://host?sentinel_user=canary", "`redis-sentinel://` alone"),
            ("rediss://host?ssl_cert_reqs=none", "cannot be turned off"),
            ("redis://host?insecure=true", "`rediss://`"),
            ("redis://host?skipVerify=1", "`rediss://`"),
            ("redis://host??prefix=canary", "`&` between two settings"),
            ("redis://host?prefix=canary?expire=5s", "`&` between two settings"),
            ("redis://host/0?", "nothing is behind the `?`"),
            ("redis://host/0#prefix=canary", "nothing behind a `#`"),
            ("redis://host/0#insecure", "nothing behind a `#`"),
            ("memory://name#a", "nothing behind a `#`"),
            ("memory://?replicas=1", "has no replicas"),
            ("memory://user:canary@x", "`memory://name`"),
        ] {
            for error in refusals(url) {
                assert!(error.contains(advice) && !error.contains("canary"), "{url}: {error}");
            }
        }
    }

    #[test]
    fn settings_of_other_programs_are_refused_where_no_other_program_reads() {
        let error = own("redis://host?timeout=5&x=1").unwrap_err().to_string();
        assert!(error.contains("`timeout` is no setting; the settings of this URL are"), "{error}");
        let shared = known("redis://host/0?timeout=5&prefix=shop:&x#insecure", Readers::Others);
        assert!(shared.is_err());
        let shared = known("rediss://host/0?timeout=5&prefix=shop:&x#insecure", Readers::Others);
        let ignored = vec!["timeout".to_owned(), "x".to_owned()];
        let url = "rediss://host/0?prefix=shop:#insecure".to_owned();
        assert_eq!(shared.unwrap(), Known { url, ignored });
    }

    /// A password that is not percent-encoded may look like a setting.
    #[test]
    fn no_part_of_a_password_is_shown() {
        for url in [
            "redis://u:canary?canary@host",
            "redis://u:1?canary=canary@host",
            "redis://u:1?canary=2&x=3@host",
            "redis://u:1?canary?x@host",
            "redis://u:1#canary@host",
            "redis://u:?prefix=canary@",
            "unix://u:/?prefix=canary@",
            "memory://u:?prefix=canary@host",
            "redis-sentinel://u:,b/name?prefix=canary@host",
            "redis://host?canary%00=1",
        ] {
            for error in refusals(url) {
                assert!(!error.contains("canary"), "{url}: {error}");
            }
        }
    }

    /// What URLs are made of, and what they are not.
    fn part() -> impl Strategy<Value = String> {
        let parts = [
            "://",
            "@",
            ":",
            "/",
            "?",
            "#",
            "&",
            "=",
            "%",
            "%4",
            "%2F",
            "%00",
            ",",
            "[",
            "]",
            "[::1]",
            "host",
            "6379",
            "99999",
            "mm",
            "0",
            "-1",
            "prefix",
            "namespace",
            "expire",
            "30s",
            "60000",
            "{",
            "db",
            "protocol",
            "resp3",
            "user",
            "sentinel_password",
            "insecure",
            "timeout",
            " ",
            "\n",
        ];
        prop_oneof![
            prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
            "\\PC{0,5}|.{0,3}"
        ]
    }

    fn parts() -> impl Strategy<Value = String> {
        proptest::collection::vec(part(), 0..8).prop_map(|parts| parts.concat())
    }

    fn scheme() -> impl Strategy<Value = String> {
        let base = "redis|rediss|valkey|valkeys|memory|unix|redis\\+unix|http|";
        (base, "|[-+](sentinel|cluster)").prop_map(|(base, ending)| base + &ending)
    }

    /// Everything that a locker shows of its URL; what it cannot read is an error about the URL.
    fn shown(builder: LockerBuilder) -> String {
        match builder.connect_lazy() {
            Ok(locker) => format!("{locker:?} {}", locker.link().backend.name()),
            Err(error) => {
                assert_eq!(error.kind(), LockErrorKind::InvalidUrl, "{error}");
                format!("{error} {error:?}")
            }
        }
    }

    proptest! {
        /// A password may have any characters, also those that a URL has to have encoded.
        #[test]
        fn no_url_shows_its_password(
            scheme in scheme(), user in "u?", before in parts(), after in parts(), rest in parts(),
        ) {
            // Behind what is a port, it may be what is meant.
            let behind_port = before.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if behind_port != before && behind_port.starts_with(['/', '?', ',']) {
                return Ok(());
            }
            let url = format!("{scheme}://{user}:{before}canary{after}@{rest}");
            for builder in [Locker::builder().url(&*url), Locker::builder().shared_url(&*url)] {
                let shown = shown(builder);
                prop_assert!(!shown.contains("canary"), "{}: {}", url, shown);
            }
        }

        #[test]
        fn any_text_is_a_url_or_refused(scheme in scheme(), rest in parts(), text in ".{0,60}") {
            for url in [format!("{scheme}://{rest}"), format!("{scheme}:{rest}"), text] {
                shown(Locker::builder().url(&*url));
                shown(Locker::builder().shared_url(&*url));
            }
        }
    }
}
